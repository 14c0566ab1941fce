"""The distributions, with parameters for the tests."""

import numpy as np

CONTINUOUS = {
    "beta": (2.5, 1.3),
    "cauchy": (),
    "chi2": (3.1,),
    "expon": (),
    "f": (3.2, 5.1),
    "gamma": (2.2,),
    "gumbel_r": (),
    "halfcauchy": (),
    "halfnorm": (),
    "halft": (3.3,),
    "invgamma": (4.6,),
    "laplace": (),
    "logistic": (),
    "lognorm": (0.8,),
    "norm": (),
    "pareto": (5.4,),
    "skewnorm": (1.4,),
    "t": (3.3,),
    "truncnorm": (-1.2, 1.9),
    "uniform": (),
    "vonmises": (1.6,),
    "weibull_min": (1.7,),
}
DISCRETE = {"bernoulli": (0.3,), "binom": (7, 0.4), "geom": (0.3,), "nbinom": (2.7, 0.4), "poisson": (2.3,)}
#: distributions without a cdf and the methods that need it
DENSITY_ONLY = ("vonmises",)
ALL = CONTINUOUS | DISCRETE
#: methods that SciPy lacks
OWN = ("halft",)
SCIPYS = {name: shapes for name, shapes in ALL.items() if name not in OWN}
#: loc and scale for arrays of points
PLACES = [{}, {"loc": 0.5, "scale": 2.0}, {"scale": -1.0}, {"loc": np.linspace(0, 1, 18)}]
POINTS = np.array([-40, -3, -1, -0.4, 0, 0.2, 0.5, 0.9, 1, 1.5, 2, 2.5, 3.7, 10, 60, np.inf, -np.inf, np.nan])
SHARES = np.array([0, 1e-9, 0.1, 0.4, 0.5, 0.6, 0.9, 1, 1.2, -0.1, np.nan])
