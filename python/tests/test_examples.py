"""The examples, as they are run from a shell."""

import subprocess
import sys
import unittest
from pathlib import Path

from cluster import Cluster

EXAMPLES = Path(__file__).parent.parent / "examples"


def start(example: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(EXAMPLES / example), *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def hear(program: subprocess.Popen[str]) -> str:
    assert program.stdout is not None
    return program.stdout.readline()


class Examples(unittest.TestCase):
    def test_what_is_said_at_one_daemon_is_heard_at_another(self) -> None:
        with Cluster(2) as cluster:
            leader = start("leader.py", cluster.socket(1), "room")
            self.assertIn("leads 1\n", hear(leader))
            listener = start("listen.py", cluster.socket(2), "room")
            # It is in the group when the leader knows it.
            while not hear(leader).endswith("leads 2\n"):
                pass
            say = start("say.py", cluster.socket(1), "room")
            say.communicate("one\ntwo\n")
            self.assertEqual(say.returncode, 0)
            for word in ("one", "two"):
                self.assertTrue(hear(listener).endswith(f"#n1 {word}\n"))
            for program in (leader, listener):
                program.kill()
                program.communicate()


if __name__ == "__main__":
    unittest.main()
