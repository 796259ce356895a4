import pytest

from tests.config.copies import ROOT
from workflow_scripts.common.errors import UserError
from workflow_scripts.config.catalogue import parse_run
from workflow_scripts.config.loading import load_catalogue


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ("scan-jump-x2/transformer/default/11", "is not of the form"),
        ("scan-jmp-x2/transformer/default/seed-1", "did you mean 'scan-jump-x2'?"),
        ("scan-jump-x2/transfomer/default/seed-1", "did you mean 'transformer'?"),
        (
            "scan-jump-x2/transformer/defualt/seed-1",
            "transformer has no variant 'defualt'; did you mean 'default'?",
        ),
    ],
)
def test_an_unknown_run_is_refused_with_the_nearest(run: str, message: str):
    with pytest.raises(UserError) as error:
        parse_run(load_catalogue(ROOT), run)
    assert message in str(error.value)
