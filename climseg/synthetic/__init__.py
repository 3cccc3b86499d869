"""A made CAM5-like atmosphere with tropical cyclones and atmospheric rivers of known extent.

It serves tests, the demo and benchmarks: fields of all 16 channels whose means, spreads and structure resemble CAM5's
and real analyses', with masks that are true by construction. It holds no physics beyond what follows, and nothing
learnt or measured on it says anything about the climate.

- ``climate``: zonal means by latitude and season from hand-made tables; ``surface``: made continents and mountains.
- ``eddies``: random rotational waves with an n^-3 energy spectrum, drifting eastward, renewed every three days,
  stronger in middle latitudes and in winter; pressure and heights geostrophic to them; moisture drawn out by it.
- ``cyclones``: tropical cyclones (Holland 1980 pressure and wind, warm and moist core). ``rivers``: atmospheric rivers.
- ``lows`` and ``decoys``, unlabelled: lows of middle latitudes, some dry; short moist plumes; tropical moisture blobs.
- ``catalogue``: which object lives when; ``true_objects`` lists them. ``atmosphere`` puts all together.
- ``files``: netCDF files of it.
- ``further``: vapour transport and heights at 300 and 500 hPa, where asked for.
- ``scene``: objects at places of the caller's choice (``placed``) in a climate without eddies, to test definitions on.

Labels: a cyclone (1) is the disk out to the last radius where its own tangential wind at 850 hPa reaches 8 m/s; a river
(2) is where its own TMQ excess reaches 8 kg/m2, poleward of 20 degrees; a cyclone overwrites a river. A shear line, a
plume or a merged pair may look like either and is not labelled, so no network can reach an IoU of 1.

A state depends on the seed, the calendar and the time alone, not on the span or the grid asked for: steps may be made
in parallel, a region equals the cut of the globe. Storms and rivers are several times as frequent as on Earth.
"""

from climseg.synthetic.atmosphere import make_atmosphere
from climseg.synthetic.catalogue import TrueObject, true_objects
from climseg.synthetic.files import write_files

__all__ = ["TrueObject", "make_atmosphere", "true_objects", "write_files"]
