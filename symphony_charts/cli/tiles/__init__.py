"""`symph attach --tile`: what several processes write, side by side in panes of tmux."""
