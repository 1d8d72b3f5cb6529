"""Command lines, and lines of specs, that newcomers write out of habit, with the exit status and a part of the answer.

A row is ``status | line | part``. A line that begins with ``spec`` stands in a process, one with ``top`` at the left
margin of a spec; both are validated.
"""

ROWS = r"""
2 | ls --json | (-o json|yaml|table)
2 | ps --format json | (-o json|yaml|table)
2 | ls -o jsn | (did you mean json?)
2 | status --yaml | (-o json|yaml|table)
2 | run e.yaml -e LR=3 | (-E KEY=VALUE sets a variable)
2 | up -e LR=3 e.yaml | (-E KEY=VALUE sets a variable)
2 | up e.yaml --env LR=3 | (-E KEY=VALUE sets a variable)
2 | publish e.yaml -e LR=3 | (-E KEY=VALUE sets a variable)
2 | sweep e.yaml -e LR=3 | (-E KEY=VALUE sets a variable)
2 | up e.yaml -E | argument -E/--setenv: expected one argument
2 | up e.yaml -E LR | argument -E/--setenv: "LR" is not KEY=VALUE, and no variable that is set here
2 | up e.yaml -E =3 | argument -E/--setenv: "=3" is not KEY=VALUE, and no variable that is set here
2 | up e.yaml --setenv "A B" | argument -E/--setenv: "A B" is not KEY=VALUE, and no variable that is set here
2 | up e.yaml --env-file .env | argument --env-file: cannot read .env: No such file or directory
2 | run e.yaml --env-file e.yaml | argument --env-file: e.yaml:1 is not KEY=VALUE: "name: rl"
3 | package e.yaml -E SYMPH_RUN=1 | choose another name
3 | package e.yaml -E 1A=x | use letters, digits, underscores, dots and dashes; do not begin with a digit
2 | up --scale learner=3 e.yaml | (--set groups.NAME.replicas=3)
2 | up e.yaml --replicas 3 | (--set groups.NAME.replicas=3)
2 | up e.yaml --build | (images are built elsewhere; see symph package --workspace)
2 | up e.yaml --remove-orphans | (symph down leaves nothing behind; symph rm forgets the logs)
2 | up e.yaml --force-recreate | (did you mean --force?)
2 | up e.yaml learner | (it starts one experiment; arguments of a program are in its spec)
2 | up e.yaml f.yaml | (it starts one experiment; arguments of a program are in its spec)
2 | run e.yaml --epochs 10 | (arguments of a program are in its spec)
2 | run e.yaml --gpus 1 | (--spec-set processes.NAME.gpus=1)
2 | run e.yaml --cpus 4 | (--spec-set processes.NAME.requests.cpu=2)
2 | run e.yaml --name foo | (the name is in the spec: --spec-set name=NAME)
2 | run e.yaml --image x | (--spec-set image=IMAGE)
2 | run e.yaml -it | (a terminal is used where there is one)
2 | run e.yaml --rm | (symph down leaves nothing behind; symph rm forgets the logs)
2 | run -d --wait e.yaml | (run waits for the end, unless -d)
2 | run python train.py | (it starts one experiment; arguments of a program are in its spec)
3 | run train.py | name the experiment `experiment`, or define `def experiment():` that returns it; pass argu
3 | run ./nothere | give the path of a .yaml, .json or .py; create a spec: symph init NAME
3 | run https://example.org/e.yaml | the folder https:/example.org does not exist; create a spec: symph init NAME
2 | up -D e.yaml | (did you mean -d?)
2 | up --detatch e.yaml | (did you mean --detach?)
2 | up --watch | argument --watch: expected one argument
2 | up --wait --watch . e.yaml | leave --wait or --dry-run out
2 | up --file e.yaml | (the spec needs no flag; -f takes values of its chart)
2 | up -c e.yaml | unrecognized arguments: -c
3 | up e.yaml --set LR=3 | -E LR=3 sets a variable; known here: image, imagePullSecrets, groups, runKey, podSecurityCo
3 | up e.yaml --set learner.replicas=3 | known here: image, imagePullSecrets, groups, runKey, podSecurityContext, secu
3 | up e.yaml --set processes.learner.env.LR=3 | it belongs to the spec: --spec-set processes.learner.env.LR=VALUE
3 | up e.yaml --set groups.learner.replicas=many | groups.learner.replicas is a whole number from 0 to 99999
3 | up e.yaml --set groups.lerner.replicas=2 | did you mean groups.learner?
2 | up e.yaml --set | argument --set: expected one argument
2 | up e.yaml --set groups.learner.replicas | write KEY=VALUE; a comma inside of a value is written \,
3 | up e.yaml --spec-set processes.lerner.replicas=2 | did you mean processes.learner?
3 | up e.yaml --spec-set processes.learner.replica=2 | did you mean "replicas"?
2 | up e.yaml --spec-set nothing | write KEY=VALUE; a comma inside of a value is written \,
3 | up e.yaml -f e.yaml | give it without -f; to set a value of its chart: --set groups.NAME.replicas=2
3 | up e.yaml -f nope.yaml | give a YAML or JSON file
2 | up e.yaml -o out | 'out' (choose from 'table', 'json', 'yaml')
2 | up e.yaml --on local | (symph run --on kube; up is for here)
2 | up e.yaml --namespace x | (symph run --on kube; up is for here)
2 | run e.yaml --on k8s | (did you mean kube?)
2 | run e.yaml --on docker | 'docker' (choose from 'tmux', 'kube')
2 | run e.yaml --on tmux -n ml | leave one out
8 | down rl | nothing runs; symph up SPEC starts it
8 | down nope | nothing runs; symph up SPEC starts it
8 | down e.yaml | nothing runs; symph up SPEC starts it
2 | down --volumes | (symph rm --volumes removes them)
2 | down -v -f | unrecognized arguments: -f
2 | down learner rl | (it ends whole experiments; symph restart PROCESS restarts one)
8 | restart nope | start one: symph up SPEC
2 | restart --force | unrecognized arguments: --force
2 | attach rl -n 2 | --tile shows lines; or symph ssh -n 2 PROCESS
8 | ps nope | nothing runs; symph up SPEC starts it
8 | ps e.yaml | nothing runs; symph up SPEC starts it
3 | ps nope.yaml | did you mean e.yaml?
2 | ps -a | (symph ls -a lists experiments that have ended)
2 | ps --watch=2 | argument -w/--watch: takes no value, and is given '2'
8 | logs nope | symph up SPEC starts an experiment
2 | logs -n 5 | --tail 5 prints the last lines
2 | logs rl -n 5 | --tail 5 prints the last lines
2 | logs --lines 5 rl | (--tail LINES)
2 | logs --tail x | argument -t/--tail: expected a whole number, got 'x'
2 | logs --tail | argument -t/--tail: expected one argument
2 | logs --since yesterday | argument -s/--since: 'yesterday' is not a time: write 10m, 2h, or 2026-03-01T12:00:00Z
2 | logs --since 5min | argument -s/--since: '5min' is not a time: write 10m, 2h, or 2026-03-01T12:00:00Z
2 | logs --regex '[' | write a character that means itself with a backslash, as in '\['
2 | logs --grep loss | (--regex PATTERN)
2 | logs -c learner rl | (-p PROCESS)
8 | status nope | symph status lists what is known; -n NAMESPACE or --env ENV --repo URL say where to look
8 | status --watch 5 | symph status lists what is known; -n NAMESPACE or --env ENV --repo URL say where to look
8 | wait nope | nothing runs; symph up SPEC starts it
8 | wait nope --for done | nothing runs; symph up SPEC starts it
2 | wait --timeout ten | argument --timeout: expected a time such as 90, 90s, 5m or 1h, got 'ten'
3 | top nope | put a colon and a blank behind the key
2 | exec learner ls | symph exec PROCESS -- COMMAND
2 | exec learner echo hi | (the command comes after --, as in: symph exec PROCESS -- COMMAND)
2 | exec | the following arguments are required: PROCESS
2 | exec -it learner -- sh | (a terminal is used where there is one)
8 | ssh learner ls | nothing runs; symph up SPEC starts it
2 | cp a b | symph cp learner:/results ./results
2 | cp learner:/x | the following arguments are required: DEST
2 | cp | the following arguments are required: SOURCE, DEST
8 | open nope | start one: symph up SPEC
8 | collect nope | nothing runs; symph up SPEC starts it
8 | rm nope | nothing runs; symph up SPEC starts it
2 | rm --all | (symph rm --match '.*' means all)
8 | use nope | nothing runs; symph up SPEC starts it
3 | validate nope.yaml | did you mean e.yaml?
2 | validate --helm=3 e.yaml | argument --helm: takes no value, and is given '3'
3 | validate d.yaml | kubectl apply -f d.yaml creates it; create a spec: symph init NAME
3 | validate compose.yaml | symph import compose compose.yaml --to experiment.yaml
3 | validate sky.yaml | `run` become `cmds` of a process, nodes its `replicas`
3 | validate pc.yaml | `command` of a process becomes its `cmds`, `depends_on` becomes `after`
3 | validate tmuxp.yaml | each pane becomes a process, its `shell_command` the `cmds`
3 | validate Procfile | each line becomes a process with `cmds`
3 | validate ray.yaml | the head and the workers become processes with `ray start`
3 | validate values.yaml | symph package SPEC -f values.yaml for a chart of a spec
3 | validate train.py | name the experiment `experiment`, or define `def experiment():` that returns it; pass
3 | validate empty | create a spec: symph init NAME
3 | render | give one: compose.yaml, d.yaml, e.yaml, f.yaml
2 | plan e.yaml | add --pools FILE, or placement.pools to the spec; symph init makes a pools.yaml to begin with
3 | plan e.yaml --pools nope.tf | give a file that describes your node pools
3 | plan e.yaml --pools main.tf | run `terraform show -json > cluster.json` in Terraform's folder, and give cluster.js
2 | plan e.yaml --hours many | argument --hours: expected a number of hours, got 'many'
2 | diff | --repo URL, or `repository:` in .symph.yaml (symph gitops init)
2 | diff e.yaml --env prod | --repo URL, or `repository:` in .symph.yaml (symph gitops init)
3 | package nope | give the path of a .yaml, .json or .py; create a spec: symph init NAME
2 | package --force e.yaml | unrecognized arguments: --force
2 | package e.yaml -t mine | (did you mean --template?)
3 | package e.yaml --version one | write it like 1.2.3
2 | push | the following arguments are required: CHART, TARGET
2 | push e.yaml | the following arguments are required: TARGET
2 | push dist | the following arguments are required: TARGET
2 | publish | --repo URL, or `repository:` in .symph.yaml (symph gitops init)
2 | publish e.yaml | --repo URL, or `repository:` in .symph.yaml (symph gitops init)
2 | publish rl | --repo URL, or `repository:` in .symph.yaml (symph gitops init)
2 | promote rl | the following arguments are required: --from, --to
2 | promote rl dev prod | the following arguments are required: --from, --to
2 | rollback | the following arguments are required: EXPERIMENT
2 | rollback rl --to | argument --to: expected one argument
2 | history | the following arguments are required: EXPERIMENT
2 | retire nope | --repo URL, or `repository:` in .symph.yaml (symph gitops init)
2 | gitops | the following arguments are required: ACTION, one of init, lint, review, render, gc, allow
2 | gitops nope | 'nope' (choose from 'init', 'lint', 'review', 'render', 'gc', 'allow')
2 | gitops init | --repo URL, or `repository:` in .symph.yaml (symph gitops init)
2 | install rl e.yaml | (--name NAME names the release)
2 | upgrade rl e.yaml | (--name NAME names the release)
2 | uninstall | the following arguments are required: RELEASE
2 | import | the following arguments are required: FORMAT, one of torchx, dijob, compose, symphony, runopts
2 | import docker compose.yaml | 'docker' (choose from 'torchx', 'dijob', 'compose', 'symphony', 'runopts')
3 | import compose nope.yaml | give a file that exists
2 | export | the following arguments are required: FORMAT, one of appwrapper, dijob, kustomize, manifests
2 | export compose e.yaml | 'compose' (choose from 'appwrapper', 'dijob', 'kustomize', 'manifests')
2 | schema e.yaml | (a word too many)
8 | config nope | what is set: defaults.on, defaults.output, state_dir, runtime_dir
2 | secrets | the following arguments are required: action, one of push, seal, check
3 | secrets push e.yaml | there is nothing to push
2 | catalog | the following arguments are required: ACTION, one of import, show, search, refresh
8 | catalog show nope | see `symph catalog search`
2 | local | the following arguments are required: ACTION, one of env, render, replay, history, gc, volumes
2 | local nope | 'nope' (choose from 'env', 'render', 'replay', 'history', 'gc', 'volumes')
8 | local history nope | symph local history
2 | local gc --older-than 7 | argument --older-than: "7" is not an age, such as 90s, 12h or 7d
8 | local env nope | start one: symph up SPEC
2 | completion | the following arguments are required: shell, one of bash, zsh, fish, tcsh
2 | completion powershell | 'powershell' (choose from 'bash', 'zsh', 'fish', 'tcsh')
2 | help nope | did you mean `symph open`? all verbs: symph help --all
2 | init | the following arguments are required: NAME
2 | init . | symph init
2 | init e.yaml | symph init e makes a folder with a spec in it
2 | init x -t python | (did you mean --template?)
8 | init x --template pyhton | list the templates: symph init --help
2 | version 3 | (a word too many)
2 | --verison | (did you mean --version?)
2 | -h2 | argument -h/--help: takes no value, and is given '2'
3 | sweep | give one: compose.yaml, d.yaml, e.yaml, f.yaml
2 | sweep e.yaml | for example: --grid lr=1e-3,1e-4 --grid seed=0..9
2 | sweep e.yaml lr=1,2 | write values with commas: --grid lr=0.1,0.2; or look: symph sweep show NAME
2 | sweep e.yaml --grid lr | for example: --grid lr=1e-3,1e-4 or seed=0..9
2 | sweep e.yaml --grid lr= | for example: --grid lr=1e-3,1e-4 or seed=0..9
2 | sweep e.yaml --grid lr=0.1..0.5 | write 0.1..0.5..STEP, list the values with commas, or draw them: --uniform lr=0.
2 | sweep e.yaml --grid lr=[0.1,0.2] | write the values separated by commas, without brackets, as in lr=0.1,0.2
2 | sweep e.yaml --grid lr=0.1:0.5 | write first..last or first..last..step, as in lr=1..5 or lr=0.1..0.5..0.1
2 | sweep e.yaml --grid lr=1.. | write first..last or first..last..step, as in lr=1..5 or lr=0.1..0.5..0.1
3 | sweep e.yaml --grid lrr=1,2 | did you mean LR? declare it in a process (env: {LRR: ...}), or give a path of the sp
2 | sweep e.yaml --grid lr=1 2 | write values with commas: --grid lr=0.1,0.2
2 | sweep e.yaml --grid lr=1 --grid lr=2 | give all its values in one --grid
2 | sweep e.yaml --uniform lr=0..1 | add --random N
2 | sweep e.yaml --uniform lr=0,1 --random 3 | for example: --uniform lr=0.1..1
2 | sweep e.yaml --loguniform lr=0..1 --random 3 | draw uniformly: --uniform lr=0..1
2 | sweep e.yaml --random 5 | for example: --grid lr=1e-3,1e-4 --grid seed=0..9
2 | sweep e.yaml --grid lr=1,2 --parallel 0 | argument --parallel: expected a whole number of at least 1, got '0'
2 | sweep e.yaml --grid lr=1,2 --metric | argument --metric: expected one argument
2 | sweep e.yaml --grid lr=1,2 --up --early-stop median | add --metric KEY, as --metric loss
2 | sweep e.yaml --grid lr=1,2 --failed | symph sweep show NAME --failed
2 | sweep show | start one: symph sweep --help
8 | sweep show nope | there are: none
2 | apply e.yaml | did you mean `symph up` or `symph install` or `symph publish`? all verbs: symph help --all
2 | kill rl | did you mean `symph down` or `symph rm`? all verbs: symph help --all
2 | delete-all | did you mean `symph rm --match`? all verbs: symph help --all
2 | deploy e.yaml | did you mean `symph publish` or `symph install`? all verbs: symph help --all
2 | launch e.yaml | did you mean `symph run` or `symph up`? all verbs: symph help --all
2 | exce learner | did you mean `symph exec`? all verbs: symph help --all
2 | lgos | did you mean `symph logs`? all verbs: symph help --all
2 | UP e.yaml | did you mean `symph up`? all verbs: symph help --all
3 | spec replicas: two | write a whole number
3 | spec replicas: 2.5 | write a whole number
3 | spec replicas: -1 | at least 0
3 | spec gpu: 1 | did you mean "gpus"?
3 | spec gpus: one | write a whole number
3 | spec cpus: 4 | write `requests: {cpu: ...}`
3 | spec memory: 4Gi | write `requests: {memory: ...}`
3 | spec requests: {cpu: lots} | write it as Kubernetes does: "500m", "1.5", "2Gi"
3 | spec requests: {memory: 4GB} | did you mean "4G"?
3 | spec requests: {gpu: a100} | write a whole number
3 | spec resources: {cpu: 4} | write `requests` and `limits` right here, without `resources` around them
3 | spec environment: {A: x} | did you mean "env"?
3 | spec env: [A=x] | write KEY: VALUE, without dashes, as in `A: "x"`
3 | spec env: {A: yes} | write true, false or "yes" in quotes
3 | spec env: {A: 010} | write "010" in quotes
3 | spec env: {A: 1_000} | write "1_000" in quotes
3 | spec env: {A: } | write "" for an empty one
3 | spec env: {A B: x} | use letters, digits, underscores, dots and dashes; do not begin with a digit
3 | spec depends_on: [b] | did you mean "after"?
3 | spec after: b | choose one of: learner
3 | spec entrypoint: python | did you mean "command"?
3 | spec working_dir: /x | did you mean "cwd"?
3 | spec volumes: [./data:/data] | `volumes` belongs to the experiment: write it at the left margin
3 | spec mounts: [./data:/data] | a folder of yours: `{claim: {claim: data, local: ./data}, at: /data}`
3 | spec mounts: [/data:/data] | write `{host_path: /data, at: /data}`
3 | spec mounts: [{host_path: ./data, at: /data}] | a folder of yours: `{claim: {claim: data, local: ./data}, at: /dat
3 | spec mounts: [{claim: data}] | add `at:` there
3 | spec mounts: [{volume: nope, at: /x}] | declare it under `volumes:`, or describe it in the mount
3 | spec ports: [8080:80] | did you mean "exposes"?
3 | spec binds: 8080 | write a map
3 | spec binds: {web: 8080:80} | write only the port on which it listens: 80
3 | spec binds: {web: http} | write a whole number
3 | spec binds: Web | use lower-case letters, digits and dashes; begin with a letter, end with a letter or digit
3 | spec connects: nope | add `binds: nope` to a process, or correct the name
3 | spec connects: {web: 80} | set the port in the process that binds it: `binds: {name: port}`
3 | spec restart: sometimes | write one of them
3 | spec restart: unless-stopped | write one of them
3 | spec deadline: tomorrow | write a whole number
3 | spec grace_period: -1 | at least 0
3 | spec retries: many | write a whole number
3 | spec image: python 3 | write it as [registry/]name[:tag][@digest], without blanks and https://
3 | spec image: https://example.org/x | write it as [registry/]name[:tag][@digest], without blanks and https://
3 | spec args: $(SYMPH_CONFIG_DRI)/x | did you mean "SYMPH_CONFIG_DIR"?
3 | spec cmds: python a.py | keep `cmds`, or `command`
3 | spec shell: fish | did you mean "sh"?
3 | spec ready: http://localhost/ | use a number, or a service of this process
3 | spec ready: {http: /health} | use a number, or a service of this process
3 | spec node_selector: gpu | write `KEY: VALUE` lines below
3 | spec tolerations: gpu | write a list
3 | spec labels: [a] | write KEY: VALUE, without dashes
3 | spec lifecycle: forever | write one of them
3 | spec healthcheck: {test: x} | did you mean "ready"?
3 | spec when: always | did you mean "after"?
3 | top version: 3 | known keys: annotations, chart, compat, configs, done_when, env, env_file, expose, groups, image
3 | top services: {web: {image: x}} | a service is what a process `binds`; a compose file comes over by symph import c
3 | top volumes: [data] | write KEY: VALUE, without dashes
3 | top volumes: {data: ./data} | write `KEY: VALUE` lines below
3 | top namespace: My_NS | use lower-case letters, digits and dashes; begin and end with a letter or digit
3 | top configs: {a: {file: nope.yaml}} | relative paths start at the folder of the spec file
3 | top workload: {kind: deployment} | write one of them
3 | top workload: jobs | write `KEY: VALUE` lines below
3 | top done_when: [nope] | choose one of: learner
3 | top image: [x] | write text
3 | top groups: [a] | write KEY: VALUE, without dashes
3 | top placement: {pool: x} | did you mean "pools"?
3 | top replicas: 3 | `replicas` belongs to a process: indent it below its name, below `processes:`
3 | top security: root | write `KEY: VALUE` lines below
3 | top port_range: 80 | write a list of 2 values
3 | top expose: {web: LoadBalancer} | add `exposes: web` to a process
3 | top metadata: {name: x} | known keys: annotations, chart, compat, configs, done_when, env, env_file, expose, groups
3 | top prepare: {x: python a.py} | write `KEY: VALUE` lines below
3 | top worker: {command: x} | known keys:
3 | top provider: aws | known keys:
3 | top resources: {cpu: 1} | known keys:
"""
