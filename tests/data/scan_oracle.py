"""What a SCAN command means, read from its words: written without the grammar that makes the
commands.
"""


def interpret(command: str) -> list[str]:
    """Actions of a command. Raises ValueError for what is no command."""
    words = command.split(" ")
    if "after" in words:
        first, second = command.split(" after ")
        return interpret(second) + interpret(first)
    if "and" in words:
        first, second = command.split(" and ")
        return interpret(first) + interpret(second)
    if words[-1] in ("twice", "thrice"):
        return interpret(" ".join(words[:-1])) * (2 if words[-1] == "twice" else 3)
    if len(words) == 1:
        if words[0] in ("turn", "left", "right", "around", "opposite"):
            raise ValueError(command)
        return ["I_" + words[0].upper()]
    *manner, direction = words[1:]
    if direction not in ("left", "right"):
        raise ValueError(command)
    turn = "I_TURN_" + direction.upper()
    act = [] if words[0] == "turn" else interpret(words[0])
    if manner == ["around"]:
        return [turn, *act, turn, *act, turn, *act, turn, *act]
    if manner == ["opposite"]:
        return [turn, turn, *act]
    if manner:
        raise ValueError(command)
    return [turn, *act]
