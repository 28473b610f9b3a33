from headrace._core import Ranks

def join() -> Ranks:
    """The processes that mpirun or another launcher started together."""
