"""What the build remembers between runs; its data lies in ignored files beside it (`state.*`).

atomic    files written whole or not at all, several at once
files     digests of files, trusted by signature
source    the import closure of a step's code, and what of it counts
database  saved state: file digests, facts of modules, step records
imports   modules run from their source, not from stale bytecode
store     outputs of steps by what they were made from
remote    a second level of the store, by URL
front     an unchanged tree answered without a build
lock      one build at a time
"""
