"""Changes the rights of a file of its own while a second thread puts the caller's in its place: in the text of the
path, behind a link, behind a descriptor's number.

Would gain: a private key that everybody can read, if whoever looks at the path reads it before the kernel does.
"""


def host(case):
    path = case.home / "key"
    path.write_text("csn-secret-value")
    path.chmod(0o600)
    (case.ws / "mine").write_text("mine")
    case.give()
    yield {"flags": ["--rw"], "command": ["attack/rights_swap", path]}
    assert path.stat().st_mode & 0o777 == 0o600
