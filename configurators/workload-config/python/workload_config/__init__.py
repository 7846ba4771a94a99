"""Configures Deployments in batches, as the module in Rust in the folder above does: see its README."""

from . import root, write, cleanup  # noqa: F401, I001 - their imports declare the handlers, in this order
