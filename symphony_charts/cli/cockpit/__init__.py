"""`symph top` as a whole screen: processes, the lines of one, and keys to steer them. Needs the extra ``top``."""
