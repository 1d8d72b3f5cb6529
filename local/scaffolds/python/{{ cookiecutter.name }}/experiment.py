"""{{ cookiecutter.name }}: a server that counts, and clients that ask it.

symph up experiment.py --wait                    here, in tmux
symph plan experiment.py --pools pools.yaml      does it fit, and what does it cost
symph package experiment.py                      a Helm chart for Kubernetes
"""

from symphony_charts import Cluster

cluster = Cluster.new("kubernetes")
experiment = cluster.new_experiment("{{ cookiecutter.name }}", image="{{ cookiecutter.image }}")
experiment.add_config("counter.py", file="counter.py")

PROGRAM = "$(SYMPH_CONFIG_DIR)/counter.py"
server = experiment.new_process("server", command="python3", args=[PROGRAM, "serve"], lifecycle="service")
server.binds("counter")
client = experiment.new_process("client", command="python3", args=[PROGRAM, "ask"], replicas=2)
client.connects("counter")
