"""CAT (Huang et al. 2024): BERT with a codebook after each block.

Each state is composed of the codes. In each layer, h_cont is the output of BERT's block, h_comp its
composition from the codes (Eqn 2), and h_mix the mixture of both (Eqn 3), which is the input of the
next layer. `CatModel` is a Hugging Face model like `BertModel`.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, scaled_dot_product_attention
from transformers import AutoConfig, AutoModel, BertConfig
from transformers import initialization as init
from transformers.masking_utils import create_bidirectional_mask
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.models.bert.modeling_bert import BertEmbeddings, BertLayer, BertPreTrainedModel
from transformers.utils.generic import ModelOutput

from workflow_scripts.models.cat.settings import Settings
from workflow_scripts.models.encoder.model import (
    build_from_config,
    load_with_config,
    map_bert_sizes,
)
from workflow_scripts.models.encoder.settings import Settings as EncoderSettings

EPSILON = 1e-8


class CatConfig(BertConfig):
    """BERT's configuration with CAT's own keys, which are described in `Settings`."""

    model_type = "cat"

    codes: int = 1000
    last_codes: int = 3152
    attention: str = "relu"
    score: str = "dot"
    normalisation: str = "l2"
    output_projection: bool = True
    value_bias: bool = False
    mixing: str = "shared"
    mixing_residual: bool = False


def build_cat_config(settings: Settings, vocabulary: int) -> CatConfig:
    """Return the configuration with the sizes of `settings` and this vocabulary size."""
    own_names = Settings.model_fields.keys() - EncoderSettings.model_fields.keys()
    own = {name: getattr(settings, name) for name in own_names}
    return CatConfig(**map_bert_sizes(settings, vocabulary), **own)


@dataclass(frozen=True)
class CodeWeights:
    """Weights O = scale * weights of the codes of a layer, for each token.

    weights [B, S, K]: not negative, before normalisation. scale [B, S, 1]. They are stored apart
    because the product would need as much memory as the weights.
    """

    weights: Tensor
    scale: Tensor

    def normalise(self) -> Tensor:
        """Return the normalised weights O [B, S, K]."""
        return self.scale * self.weights

    def sum_over_codes(self) -> Tensor:
        """Return the sum of |O| over the codes, [B, S]."""
        return self.weights.sum(-1) * self.scale.abs().squeeze(-1)


class CodebookAttention(GradientCheckpointingLayer):
    """O = norm(ReLU(f(Q, K))), h_comp = O V, followed by a projection   (Eqn 2).

    Q = h_cont W_Q, K = e W_K and V = e W_V with the codebook e [K, d], which CatModel initialises.
    A state that matches no code has h_comp = 0. `normalisation` chooses the norm: the paper's text
    has the root mean square (`rms`), its code the l2 norm. The reading with `attention: softmax`
    has weights softmax(f(Q, K)) and no norm.
    """

    def __init__(self, config: CatConfig, codes: int):
        super().__init__()
        width = config.hidden_size
        self.codebook = nn.Parameter(torch.empty(codes, width))
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width, bias=config.value_bias)
        if config.output_projection:
            self.output = nn.Linear(width, width, bias=False)
        else:
            self.output = nn.Identity()
        self.scale = nn.Parameter(torch.ones(1))
        self.cosine = config.score == "cosine"
        self.dense = config.attention == "softmax"
        # The root mean square of K weights has the factor sqrt(K).
        self.factor = codes**0.5 if config.normalisation == "rms" else 1.0

    def forward(self, states: Tensor) -> tuple[Tensor, CodeWeights]:
        """Return (h_comp [B, S, d], weights of the codes) for h_cont [B, S, d]."""
        query = self.query(states)
        key = self.key(self.codebook)
        if self.cosine:
            query = normalize(query, dim=-1)
            key = normalize(key, dim=-1)
        else:
            key = key * key.size(-1) ** -0.5
        scores = query @ key.T
        if self.dense:
            weights = scores.softmax(-1)
            scale = self.scale.expand(*weights.shape[:-1], 1)
        else:
            weights = scores.relu()
            norm = torch.linalg.vector_norm(weights, dim=-1, keepdim=True)
            scale = self.factor * self.scale / (norm + EPSILON)
        # Scaling d features gives the same result as scaling K weights, with less work.
        composed = self.output((weights @ self.value(self.codebook)) * scale)
        return composed, CodeWeights(weights, scale)


class StreamMixer(GradientCheckpointingLayer):
    """h_mix: self-attention over [h_cont; h_comp], and the mean of the two halves (Eqn 3).

    The attention has one head; its input is 2 S long.
    """

    def __init__(self, config: CatConfig):
        super().__init__()
        width = config.hidden_size
        self.projections = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.norm = None
        if config.mixing_residual:
            self.norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = config.attention_probs_dropout_prob

    def forward(self, cont: Tensor, comp: Tensor, real: Tensor | None) -> Tensor:
        """Mix h_cont and h_comp [B, S, d] into [B, S, d].

        real: [B, S] bool, False on padding; None without padding.
        """
        both = torch.cat([cont, comp], dim=1)
        query, key, value = self.projections(both)[:, None].chunk(3, dim=-1)
        attention_mask = None  # [B, 1, 1, 2 S] bool, True where a key is attended to
        if real is not None:
            attention_mask = torch.cat([real, real], dim=1)[:, None, None]
        dropout = self.dropout if self.training else 0.0
        attended = scaled_dot_product_attention(
            query, key, value, attn_mask=attention_mask, dropout_p=dropout
        )
        of_cont, of_comp = attended[:, 0].split(cont.size(1), dim=1)
        # The mean of the projected halves is the projection of their mean.
        mixed = self.output((of_cont + of_comp) / 2)
        if self.norm is None:
            return mixed
        return self.norm(mixed + cont)


class Mean(nn.Module):
    """(h_cont + h_comp) / 2, in place of StreamMixer."""

    def forward(self, cont: Tensor, comp: Tensor, real: Tensor | None) -> Tensor:
        """Average h_cont and h_comp [B, S, d]; see StreamMixer."""
        return (cont + comp) / 2


def make_mixer(config: CatConfig) -> StreamMixer | Mean:
    """Make the module that mixes h_cont and h_comp."""
    if config.mixing == "mean":
        return Mean()
    return StreamMixer(config)


@dataclass
class CatOutput(ModelOutput):
    """States [B, S, d] of the last layer.

    They are h_mix (last_hidden_state), h_cont (contextual) and h_comp (compositional).
    gaps: h_cont - h_comp of each layer, [B, S, d]. codes: the weights of the codes of each layer.
    """

    last_hidden_state: Tensor | None = None
    contextual: Tensor | None = None
    compositional: Tensor | None = None
    gaps: tuple[Tensor, ...] | None = None
    codes: tuple[CodeWeights, ...] | None = None

    @property
    def readouts(self) -> dict[str, Tensor]:
        """States that tasks may read: `mix`, `cont` and `comp`."""
        # The library wants None as default, and CatModel gives all three.
        assert self.last_hidden_state is not None
        assert self.contextual is not None
        assert self.compositional is not None
        return {"mix": self.last_hidden_state, "cont": self.contextual, "comp": self.compositional}


class CatModel(BertPreTrainedModel):
    """The encoder, without heads."""

    config_class = CatConfig
    base_model_prefix = "cat"
    _input_embed_layer = "word_embeddings"
    _no_split_modules = ["BertEmbeddings", "BertLayer", "CodebookAttention"]

    def __init__(self, config: CatConfig):
        super().__init__(config)
        count = config.num_hidden_layers
        self.embeddings = BertEmbeddings(config)
        self.blocks = nn.ModuleList(BertLayer(config, layer_idx=i) for i in range(count))
        sizes = [config.codes] * (count - 1) + [config.last_codes]
        self.codebooks = nn.ModuleList(CodebookAttention(config, codes) for codes in sizes)
        mixers = count if config.mixing == "per_layer" else 1
        self.mixing = nn.ModuleList(make_mixer(config) for _ in range(mixers))
        self.post_init()

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if isinstance(module, CodebookAttention):
            # Xavier's standard deviation with the gain of ReLU, as in the official code.
            init.normal_(module.codebook, std=2 / sum(module.codebook.shape) ** 0.5)
            init.ones_(module.scale)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
    ) -> CatOutput:
        """Run the encoder.

        input_ids, token_type_ids [B, S] int64; attention_mask [B, S], 0 on padding. The states that
        are returned are those of the last layer; gaps and codes are those of all layers.
        """
        states = self.embeddings(input_ids=input_ids, token_type_ids=token_type_ids)
        mask = create_bidirectional_mask(
            config=self.config, inputs_embeds=states, attention_mask=attention_mask
        )
        real = None if attention_mask is None else attention_mask.bool()
        contextual = states  # h_cont of the block before
        compositional = states  # h_comp of the block before
        gaps = []
        codes = []
        for number, (block, codebook) in enumerate(zip(self.blocks, self.codebooks, strict=True)):
            contextual = block(states, mask)
            compositional, weights = codebook(contextual)
            mixer = self.mixing[number % len(self.mixing)]  # of this layer, or the only one
            states = mixer(contextual, compositional, real)
            gaps.append(contextual - compositional)
            codes.append(weights)
        return CatOutput(
            last_hidden_state=states,
            contextual=contextual,
            compositional=compositional,
            gaps=tuple(gaps),
            codes=tuple(codes),
        )


def build(settings: Settings, vocabulary: int) -> CatModel:
    """Build an encoder with random float32 weights, in training mode, without heads."""
    model = build_from_config(build_cat_config(settings, vocabulary))
    assert isinstance(model, CatModel)  # registered below for a CatConfig
    return model


def load_model(folder: Path, settings: Settings) -> CatModel:
    """Load a folder's encoder, float32, in training mode, with the dropout of `settings`.

    Raises UserError.
    """
    model = load_with_config(folder, settings.family, partial(build_cat_config, settings))
    assert isinstance(model, CatModel)
    return model


AutoConfig.register("cat", CatConfig, exist_ok=True)
AutoModel.register(CatConfig, CatModel, exist_ok=True)
