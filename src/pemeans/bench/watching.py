"""Populations and survivors of every iteration, for the study of vote splitting."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np

from pemeans.estimators import PEMeans
from pemeans.evolution.loop import Iteration, Settings, Watcher, pe_means
from pemeans.evolution.select import Selection
from pemeans.kernels.grid import FloatArray, to_float
from pemeans.privacy.curator import Curator


@dataclass(frozen=True, eq=False)
class Scene:
    """One iteration: all candidates, and those that were selected."""

    population: FloatArray
    selected: FloatArray


class WatchedPEMeans(PEMeans):
    """PE-means that remembers what every iteration saw; the result is the same."""

    def _evolve(
        self, curator: Curator, settings: Settings, rng: np.random.Generator, watch: Watcher | None
    ) -> Selection:
        self.scenes_: list[Scene] = []

        def remember(iteration: Iteration) -> None:
            centers = iteration.survivors.centers
            self.scenes_.append(Scene(to_float(iteration.population), to_float(centers)))

        return pe_means(curator, settings, rng, remember)


def watched(estimator: PEMeans) -> WatchedPEMeans:
    """The same estimator, watched."""
    return WatchedPEMeans(**estimator.get_params(deep=False))


def pack(scenes: list[Scene]) -> bytes:
    """Scenes as a compressed file of arrays."""
    buffer = io.BytesIO()
    arrays = {f"population{i}": scene.population for i, scene in enumerate(scenes)}
    arrays |= {f"selected{i}": scene.selected for i, scene in enumerate(scenes)}
    np.savez_compressed(buffer, **{name: array.astype(np.float32) for name, array in arrays.items()})  # type: ignore[arg-type]
    return buffer.getvalue()


def unpack(content: bytes) -> list[Scene]:
    """The scenes that `pack` wrote."""
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        number = sum(name.startswith("population") for name in arrays.files)
        return [
            Scene(arrays[f"population{i}"].astype(float), arrays[f"selected{i}"].astype(float))
            for i in range(number)
        ]
