"""The same in a copy-on-write workspace, where a rename copies upwards what it moves.

Would gain: the secrets, from the upper layer.
"""
from hidden_files_ro import plant
from hidden_files_rw import attack
from inside import main


def host(case):
    from hosts import picture
    plant(case)
    (case.ws / "plain").write_text("plain")
    case.give()
    before = picture(case.ws)
    run = yield {"flags": ["--cow"]}
    assert "csn-secret-value" not in run.out and picture(case.ws) == before


if __name__ == "__main__":
    main(attack)
