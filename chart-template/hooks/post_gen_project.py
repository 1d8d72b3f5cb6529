"""Puts the hash of all templates into the name of each, since names hold for a whole release of several charts."""

import hashlib
import re
from pathlib import Path

whole = hashlib.sha256()
folders = (Path("templates"), Path("charts/symph/templates"))
templates = {path.as_posix(): path for folder in folders for path in folder.rglob("*") if path.is_file()}
for name, path in sorted(templates.items()):
    whole.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
prefix = rb'\1 "symph.%s.' % whole.hexdigest()[:6].encode()
for path in templates.values():
    path.write_bytes(re.sub(rb'\b(define|include) "symph\.', prefix, path.read_bytes()))
