import copy
import json
import logging
import pickle
from dataclasses import asdict, dataclass
from typing import Any, cast

import pytest
from pydantic import BaseModel, ConfigDict, PydanticSchemaGenerationError
from pydantic_core import PydanticSerializationError
from temporalio.contrib.pydantic import pydantic_data_converter

from edgewright.sealing import Plaintext

SECRET = b"marker-3141592"


@dataclass(frozen=True)
class CarriesPlaintext:
    value: Any


class ModelWithPlaintext(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    value: Plaintext


def test_reveal_gives_the_exact_bytes() -> None:
    octets = bytes(range(256))
    assert Plaintext(octets).reveal() == octets
    assert len(Plaintext(octets)) == 256


def test_later_changes_of_the_buffer_do_not_reach_the_plaintext() -> None:
    buffer = bytearray(b"before")
    plaintext = Plaintext(cast(bytes, buffer))  # what a library hands over may be one
    buffer[:] = b"after!"
    assert plaintext.reveal() == b"before"


def test_an_empty_value_is_a_value() -> None:
    assert Plaintext(b"")
    assert len(Plaintext(b"")) == 0


def test_text_made_of_it_never_shows_the_value(caplog: pytest.LogCaptureFixture) -> None:
    plaintext = Plaintext(SECRET)
    logging.getLogger("test").warning("%s %r", plaintext, plaintext)
    shown = [str(plaintext), repr(plaintext), f"{plaintext}", f"{plaintext:>40}", f"{[plaintext]}", caplog.text]
    assert all("<plaintext>" in text and SECRET.decode() not in text for text in shown)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_it_cannot_be_pickled(protocol: int) -> None:
    with pytest.raises(TypeError, match="cannot be serialised"):
        pickle.dumps(Plaintext(SECRET), protocol)


@pytest.mark.parametrize(
    "serialise", [copy.copy, copy.deepcopy, json.dumps, bytes, vars, lambda p: asdict(CarriesPlaintext(p))]
)
def test_nothing_else_copies_or_serialises_it(serialise: Any) -> None:
    with pytest.raises(TypeError):
        serialise(Plaintext(SECRET))


def test_a_model_cannot_declare_it_without_allowing_arbitrary_types() -> None:
    with pytest.raises(PydanticSchemaGenerationError):

        class Refused(BaseModel):
            value: Plaintext


def test_a_model_that_holds_it_cannot_be_written_as_json() -> None:
    with pytest.raises(PydanticSerializationError):
        ModelWithPlaintext(value=Plaintext(SECRET)).model_dump_json()


@pytest.mark.parametrize(
    "payload",
    [
        Plaintext(SECRET),
        {"value": Plaintext(SECRET)},
        [Plaintext(SECRET)],
        CarriesPlaintext(Plaintext(SECRET)),
        ModelWithPlaintext(value=Plaintext(SECRET)),
    ],
    ids=["bare", "mapping", "list", "dataclass", "model"],
)
async def test_temporal_refuses_to_carry_it(payload: object) -> None:
    with pytest.raises((PydanticSerializationError, TypeError)) as refusal:
        await pydantic_data_converter.encode([payload])
    assert SECRET.decode() not in str(refusal.value)
