"""A Ray cluster on this machine, as a process: a head without CPUs, and nodes that come and go as its stdin says.

It prints one line of JSON when the nodes are up, and one for each command: `add N`, `kill NODE`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from ray.cluster_utils import Cluster

_STORE = 100 << 20


def main(nodes: int) -> None:
    head = {"num_cpus": 0, "object_store_memory": _STORE, "include_dashboard": False}
    cluster: Any = Cluster(initialize_head=True, head_node_args=head)
    up = {str(number): cluster.add_node(num_cpus=1, object_store_memory=_STORE) for number in range(1, nodes + 1)}
    cluster.wait_for_nodes()
    _tell(address=cluster.address, session=cluster.head_node.get_session_dir_path())
    for line in sys.stdin:
        command, name = line.split()
        if command == "add":
            up[name] = cluster.add_node(num_cpus=1, object_store_memory=_STORE)
        else:
            cluster.remove_node(up.pop(name), allow_graceful=False)
        _tell(done=line.strip())
    cluster.shutdown()


def _tell(**what: Any) -> None:
    print(json.dumps(what), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]))
