DI_RANK=`expr "$DI_FIRST_RANK" + "$SYMPH_INDEX"`; export DI_RANK; exec "$@"
