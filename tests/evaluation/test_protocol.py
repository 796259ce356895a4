from workflow_scripts.evaluation.protocol import worst_protocol


def test_the_worst_protocol_wins():
    assert worst_protocol("paper", "reduced") == "reduced"
    assert worst_protocol("stand_in", "paper") == "stand_in"
