"""The members of a record's JSON object, where they are not its fields: what `JSON_NAMES` of a record says.

Records on every floor have it, and `dryfit.answers.json_data` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping


def json_names(members: str) -> Mapping[str, str]:
    """Attribute to the name of its member, in order, from words: `tensor`, or `source:from` where the two differ."""
    pairs = (word.partition(":") for word in members.split())
    return {attribute: name or attribute for attribute, _, name in pairs}
