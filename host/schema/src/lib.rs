//! Schemas of API objects: validation, defaults, pruning, patches, apply and tables
