"""The published schema: equal to the code, true of what is written, closed to what is not allowed."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given

from openmemex.memory.frontmatter import render
from openmemex.memory.json_schema import schema, text
from openmemex.memory.model import FIELDS, Memory
from tests.memory.test_frontmatter_properties import memories

FILE = Path(__file__).resolve().parents[2] / "docs" / "memory.schema.json"
A = "01K6AB3XZQ7WVD9J1M2N4P5Q6A"


def front_of(memory: Memory) -> dict[str, Any]:
    front = yaml.safe_load(render(memory).decode().split("\n---\n")[0].removeprefix("---\n"))
    assert isinstance(front, dict)
    return front


def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema())


def test_the_file_is_the_code() -> None:
    assert FILE.read_text(encoding="utf-8") == text(), "run: python scripts/write_schema.py"
    assert json.loads(text()) == schema()


def test_it_is_a_schema_of_every_field_in_the_order_of_the_table() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    assert list(schema()["properties"]) == [field.name for field in FIELDS]
    assert all(value["description"] for value in schema()["properties"].values())


def test_a_new_memory_is_valid() -> None:
    validator().validate(front_of(Memory(id=A, body="x")))


@given(memories)
def test_what_is_written_is_valid_but_for_the_limits_of_new_input(memory: Memory) -> None:
    front = front_of(memory)
    # Names of a project or a person have no form here; the key's form is checked where keys are made.
    front["scope_key"] = None
    validator().validate(front)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", A.lower()),
        ("id", None),
        ("schema_version", "2"),
        ("scope", "team"),
        ("scope_key", "mine"),
        ("visibility", "public"),
        ("type", "warning"),
        ("status", "gone"),
        ("tags", "auth"),
        ("tags", ["a", "a"]),
        ("tags", [1]),
        ("tags", [str(n) for n in range(33)]),
        ("aliases", ["a", "b", "c", "d", "e"]),
        ("created_at", None),
        ("supersedes", "x"),
        ("review_history", None),
        ("review_history", [{"at": "x"}]),
        ("links", ["x"]),
        ("paths", "src"),
        ("project_name", 3),
    ],
)
def test_what_is_not_allowed_is_not_valid(name: str, value: Any) -> None:
    front = copy.deepcopy(front_of(Memory(id=A, body="x")))
    front[name] = value
    with pytest.raises(jsonschema.ValidationError):
        validator().validate(front)


@pytest.mark.parametrize("name", [field.name for field in FIELDS if not field.optional])
def test_every_field_that_is_not_optional_is_required(name: str) -> None:
    front = front_of(Memory(id=A, body="x"))
    del front[name]
    with pytest.raises(jsonschema.ValidationError):
        validator().validate(front)
