"""draft"""

from climseg.synthetic.atmosphere import make_atmosphere
from climseg.synthetic.catalogue import TrueObject, true_objects

__all__ = ["TrueObject", "make_atmosphere", "true_objects"]
