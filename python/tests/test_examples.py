"""The examples, as they are run from a shell."""

import re
import subprocess
import sys
import unittest
from pathlib import Path

from cluster import Cluster

PYTHON = Path(__file__).parent.parent
EXAMPLES = PYTHON / "examples"
GUIDE = PYTHON.parent / "docs" / "guide.md"


def start(example: str, *arguments: str) -> subprocess.Popen[str]:
    return run(str(EXAMPLES / example), *arguments)


def run(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-u", *arguments]
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

    def test_what_the_guide_shows_runs(self) -> None:
        code = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
        self.assertEqual(len(code), 2)
        with Cluster(1) as cluster:
            threads, loop = (
                part.replace("/run/rota/rota.sock", cluster.socket(1)) for part in code
            )
            alice = run("-c", threads)
            self.assertEqual(hear(alice), "orders ('#alice#n1',)\n")
            self.assertEqual(hear(alice), "#alice#n1 b'hello'\n")
            other = run("-c", loop)
            self.assertIn("payload=b'hello'", hear(other))
            for program in (alice, other):
                program.kill()
                program.communicate()


if __name__ == "__main__":
    unittest.main()
