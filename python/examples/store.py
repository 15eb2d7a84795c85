"""A replicated store with checkpoints: store.py ADDRESS NAME GROUP COPIES JOURNAL, as many times as there are copies.

Commands are `set KEY VALUE`, `add KEY NUMBER`, `get KEY`. `store` of the examples of `crates/client` is another copy of the same.
"""

import contextlib

import replicated


class Store(replicated.Machine):
    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def apply(self, sender: str, command: str) -> str:
        match command.split(" ", 2):
            case ["set", key, value]:
                self.values[key] = value
                return value
            case ["add", key, number]:
                total = self.number(self.values.get(key, "0")) + self.number(number)
                # As numbers of 64 bits wrap.
                total = (total + (1 << 63)) % (1 << 64) - (1 << 63)
                self.values[key] = str(total)
                return str(total)
            case ["get", key]:
                return self.values.get(key, "-")
        return "what?"

    @staticmethod
    def number(text: str) -> int:
        """A number of 64 bits; what is none is 0."""
        with contextlib.suppress(ValueError):
            value = int(text)
            if text.lstrip("+-").isascii() and -(1 << 63) <= value < 1 << 63:
                return value
        return 0

    def write(self) -> str:
        return "".join(f"{key} {value}\n" for key, value in sorted(self.values.items()))

    def read(self, text: str) -> None:
        pairs = (line.split(" ", 1) for line in text.splitlines())
        self.values = {key: value for key, value in pairs}


if __name__ == "__main__":
    replicated.run(Store())
