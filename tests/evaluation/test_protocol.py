from workflow_scripts.evaluation.protocol import find_worst_protocol


def test_the_worst_protocol_wins():
    assert find_worst_protocol("paper", "reduced") == "reduced"
    assert find_worst_protocol("stand_in", "paper") == "stand_in"
