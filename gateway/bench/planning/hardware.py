"""Models and GPUs, and the time of a step that follows from both."""

from dataclasses import dataclass, replace
from typing import TypeVar

from gateway.core.errors import ConfigError
from gateway.simulator.profile import EngineProfile

T = TypeVar("T")

# Of the published bandwidth and of the published computing power: what real engines reach.
_BANDWIDTH_SHARE = 0.68
_COMPUTE_SHARE = 0.64
_MEMORY_SHARE = 0.9
_HOST_MS = 1.0
_MOST = 1e6
_BYTES = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "int4": 0.5}
_CACHE_BYTES = {"fp32": 4.0, "fp8": 1.0}


@dataclass(frozen=True, slots=True)
class ModelShape:
    """What decides about time and memory. ``kv_heads``, not the query heads, make the cache."""

    layers: int
    kv_heads: int
    head_dim: int
    params: float
    dtype: str = "bf16"

    def __post_init__(self) -> None:
        if self.dtype not in _BYTES:
            raise ConfigError(f"The dtype is one of {', '.join(_BYTES)}.")
        sizes = (self.layers, self.kv_heads, self.head_dim)
        if not all(1 <= size <= _MOST for size in sizes) or not 1 <= self.params <= _MOST**3:
            raise ConfigError("A model has layers, heads, a dimension and parameters above 0.")

    @property
    def weights(self) -> float:
        """Bytes."""
        return self.params * _BYTES[self.dtype]

    @property
    def kv_bytes(self) -> float:
        """Bytes of a token in the cache; with integer weights it stays in 16 bits."""
        width = _CACHE_BYTES.get(self.dtype, 2.0)
        return 2 * self.layers * self.kv_heads * self.head_dim * width


@dataclass(frozen=True, slots=True)
class Gpu:
    """Memory in GB, bandwidth in TB/s, dense 16-bit TFLOP/s, and an example price per hour."""

    memory: float
    bandwidth: float
    tflops: float
    price: float


MODELS = {
    "smollm2-135m": ModelShape(30, 3, 64, 0.135e9),
    "llama-2-7b": ModelShape(32, 32, 128, 6.74e9),
    "llama-2-13b": ModelShape(40, 40, 128, 13.0e9),
    "llama-3-8b": ModelShape(32, 8, 128, 8.03e9),
    "llama-3-70b": ModelShape(80, 8, 128, 70.6e9),
    "mistral-7b": ModelShape(32, 8, 128, 7.25e9),
    "qwen2.5-7b": ModelShape(28, 4, 128, 7.62e9),
    "qwen2.5-32b": ModelShape(64, 8, 128, 32.8e9),
    "qwen3-8b": ModelShape(36, 8, 128, 8.19e9),
}
GPUS = {
    "a10g": Gpu(24, 0.600, 125, 0.8),
    "l4": Gpu(24, 0.300, 121, 0.6),
    "l40s": Gpu(48, 0.864, 362, 1.2),
    "a100-40": Gpu(40, 1.555, 312, 1.5),
    "a100-80": Gpu(80, 2.039, 312, 2.0),
    "h100": Gpu(80, 3.35, 989, 3.0),
    "h200": Gpu(141, 4.8, 989, 3.5),
    "b200": Gpu(180, 8.0, 2250, 5.5),
}


def named(table: dict[str, T], name: str, kind: str) -> T:
    """An entry; raises ConfigError with the names there are."""
    if name not in table:
        raise ConfigError(f"There is no {kind} {name!r}; there are {', '.join(table)}.")
    return table[name]


def model_of(text: str) -> ModelShape:
    """A model by name, or by ``layers,kv_heads,head_dim,billions[,dtype]``. Raises ConfigError."""
    parts = text.split(",")
    if len(parts) not in {4, 5}:
        return named(MODELS, text, "model")
    try:
        layers, heads, dim = (int(part) for part in parts[:3])
        params = float(parts[3]) * 1e9
    except ValueError:
        raise ConfigError("A model is layers,kv_heads,head_dim,billions[,dtype].") from None
    return ModelShape(layers, heads, dim, params, *parts[4:])


def roofline(model: ModelShape, gpu: Gpu, gpus: int = 1, name: str = "roofline") -> EngineProfile:
    """The step time of ``model`` on ``gpus`` of a kind that share it, by bandwidth and computing.

    Raises ConfigError when the weights leave no room for a cache. What the parts of a model say to
    each other is not counted.
    """
    if not 1 <= gpus <= _MOST:
        raise ConfigError(f"A worker has 1 to {_MOST:,.0f} GPUs.")
    bandwidth = _BANDWIDTH_SHARE * gpu.bandwidth * 1e9 * gpus
    room = _MEMORY_SHARE * gpu.memory * 1e9 * gpus - model.weights
    if room < model.kv_bytes:
        need = model.weights / (_MEMORY_SHARE * gpu.memory * 1e9)
        raise ConfigError(
            f"The weights ({model.weights / 1e9:.0f} GB) do not fit: this needs more than "
            f"{need:.1f} of these GPUs (--gpus-per-worker)."
        )
    return EngineProfile(
        name=name,
        a=model.weights / bandwidth,
        b=2 * model.params / (_COMPUTE_SHARE * gpu.tflops * 1e9 * gpus),
        c=model.kv_bytes / bandwidth,
        h=_HOST_MS,
        kv_tokens=int(room / model.kv_bytes),
        price=gpu.price * gpus,
        source=f"formula: {_BANDWIDTH_SHARE} of bandwidth, {_COMPUTE_SHARE} of computing power",
    )


def measured(text: str, base: EngineProfile) -> EngineProfile:
    """``base`` with a measured fit ``a,b,c,h`` in milliseconds. Raises ConfigError."""
    try:
        a, b, c, h = (float(part) for part in text.split(","))
    except ValueError:
        raise ConfigError("A fit is four numbers: a,b,c,h in milliseconds.") from None
    return replace(base, a=a, b=b, c=c, h=h, row=0.0, source="measured fit")
