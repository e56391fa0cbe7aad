"""Compares the methods and models of a generated client with the contract."""

import inspect
import re

import yaml

METHODS = {"get", "put", "post", "delete", "options", "head", "patch"}


def snake_case(name):
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def load(contract):
    with open(contract, encoding="utf-8") as file:
        return yaml.safe_load(file)


def schema_names(contract):
    return set(load(contract)["components"]["schemas"])


def operations(contract):
    """Yields the tag, name in Python, and parameter count with the body of each operation."""
    document = load(contract)

    def key(parameter):
        if "$ref" in parameter:
            name = parameter["$ref"].removeprefix("#/components/parameters/")
            parameter = document["components"]["parameters"][name]
        return parameter["in"], parameter["name"]

    for item in document["paths"].values():
        for method, operation in item.items():
            if method in METHODS:
                listed = item.get("parameters", []) + operation.get("parameters", [])
                count = len({key(parameter) for parameter in listed})
                count += "requestBody" in operation
                yield operation["tags"][0], snake_case(operation["operationId"]), count


def check_methods(contract, find, own_parameters):
    """Fails unless `find(tag, name)` returns a method with each parameter and the body.

    `own_parameters` says which parameters belong to the generator, not to the operation.
    """
    names = []
    for tag, name, count in operations(contract):
        signature = inspect.signature(find(tag, name))
        taken = [text for text in signature.parameters if not own_parameters(text)]
        if len(taken) != count:
            raise AssertionError(f"{name} takes {taken}; the contract has {count} parameters")
        names.append(name)
    if len(names) != len(set(names)):
        raise AssertionError(f"two operations share a name: {sorted(names)}")
    return len(names)
