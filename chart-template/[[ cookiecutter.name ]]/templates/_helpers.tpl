[[ cookiecutter._helpers ]]
