"""Git repositories, read and written as objects, without a work tree; transports and credentials use git's own."""
