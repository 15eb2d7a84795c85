"""Redis' client for Python, as it is, with the shared logs. The environment's ROTA is the binary."""

import asyncio
import os
import re
import subprocess
import unittest
from typing import Any

import redis
import redis.asyncio


class Streams(unittest.TestCase):
    demo: subprocess.Popen[str]
    ports: list[int]

    @classmethod
    def setUpClass(cls) -> None:
        none = [f"--{kind}=0" for kind in ("writers", "readers", "tails")]
        command = [os.environ["ROTA"], "log", "demo", "--keep-all", *none]
        cls.demo = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert cls.demo.stderr is not None
        cls.ports = []
        while len(cls.ports) < 3:
            line = cls.demo.stderr.readline()
            assert line, "the demo has ended"
            cls.ports += [int(port) for port in re.findall(r"process \d+: .*:(\d+)", line)]

    @classmethod
    def tearDownClass(cls) -> None:
        cls.demo.kill()
        cls.demo.wait()
        assert cls.demo.stderr is not None
        cls.demo.stderr.close()

    def client(self, process: int, protocol: int = 2) -> Any:
        return redis.Redis(port=self.ports[process], protocol=protocol)

    def test_entries_are_appended_and_read(self) -> None:
        for protocol in (2, 3):
            log = f"orders-{protocol}"
            writer, reader = self.client(0, protocol), self.client(1, protocol)
            self.assertEqual(writer.xadd(log, {"item": "soup"}), b"1-0")
            named = ("XADD", log, "IDMP", "shop", 17, "*", "item", "bread")
            self.assertEqual(writer.execute_command(*named), b"2-0")
            self.assertEqual(reader.execute_command(*named), b"2-0")
            with self.assertRaises(redis.ResponseError):
                writer.xadd(log, {"item": "salt"}, id="2-0")
            with writer.pipeline(transaction=True) as both:
                both.xadd(log, {"item": "salt"})
                both.xadd(f"audit-{protocol}", {"who": "shop"})
                self.assertEqual(both.execute(), [b"3-0", b"1-0"])
            entries = [
                (b"1-0", {b"item": b"soup"}),
                (b"2-0", {b"item": b"bread"}),
                (b"3-0", {b"item": b"salt"}),
            ]
            self.assertEqual(reader.xrange(log), entries)
            self.assertEqual(reader.xrevrange(log, count=2), entries[:0:-1])
            self.assertEqual(reader.xlen(log), 3)
            self.assertEqual(reader.xinfo_stream(log)["length"], 3)
            told = reader.xread({log: 1}, block=5000)
            found = told[log.encode()][0] if protocol == 3 else told[0][1]
            self.assertEqual(found, entries[1:])
            merged = reader.execute_command("XMERGE", "STREAMS", log, f"audit-{protocol}", 0, 0)
            order = [(of[0].decode(), of[1]) for of in merged]
            self.assertEqual(order[-2:], [(log, b"3-0"), (f"audit-{protocol}", b"1-0")])
            self.assertEqual(writer.xtrim(log, maxlen=1), 2)
            self.assertEqual(reader.xrange(log), entries[2:])
            self.assertEqual(writer.delete(log), 1)
            self.assertFalse(reader.exists(log))

    def test_who_waits_is_told(self) -> None:
        async def main() -> None:
            writer: Any = redis.asyncio.Redis(port=self.ports[0])
            reader: Any = redis.asyncio.Redis(port=self.ports[2])
            self.assertEqual(await reader.xread({"later": "$"}, block=20), [])
            waits = asyncio.create_task(reader.xread({"later": 0}, block=20_000))
            await asyncio.sleep(0.1)
            await writer.xadd("later", {"a": 1})
            self.assertEqual(await waits, [[b"later", [(b"1-0", {b"a": b"1"})]]])
            await writer.aclose()
            await reader.aclose()

        asyncio.run(main())


if __name__ == "__main__":
    unittest.main()
