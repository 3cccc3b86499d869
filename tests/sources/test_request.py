from typing import Any

import pytest

from climseg.channels import CHANNELS
from climseg.errors import InputError
from climseg.sources.request import check_request


def test_every_channel_may_be_asked_for_and_none_means_all() -> None:
    check_request(["a.nc", "b.nc"], list(CHANNELS), None)
    check_request(["a.nc", "b.nc"], None, None)
    check_request(["a.nc"], ["IVT"], "2011-10-11")


@pytest.mark.parametrize(
    ("channels", "said"),
    [
        (["TNQ"], "'TNQ' is not a channel; did you mean 'TMQ'? Known: TMQ, U850"),
        (["LABELS"], "'LABELS' is not a channel"),
        (["TMQ", "PSL", "TMQ"], "The channel TMQ is asked for twice"),
        ("TMQ", "expected a list of names"),
        ([], "expected a list of names"),
        ([3], "3 is not a channel"),
    ],
)
def test_what_is_no_list_of_channels_is_refused(channels: Any, said: str) -> None:
    with pytest.raises(InputError) as error:
        check_request(["a.nc"], channels, None)
    assert said in str(error.value)


def test_a_time_for_several_files_is_refused() -> None:
    with pytest.raises(InputError, match="the input has 2 files"):
        check_request(["a.nc", "b.nc"], None, "2011-10-11")
