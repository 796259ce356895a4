"""SQ-Transformer (Jiang et al. 2024): words are clustered into codes (SoVQ), which give the attention (SAL, SRL)."""

import torch
from torch import Tensor, nn

from workflow_scripts.models.layers.transformer import (
    DecoderLayer,
    EncoderLayer,
    make_causal_mask,
    make_padding_mask,
    select_codes,
    select_positions,
    select_words,
)
from workflow_scripts.models.sq_transformer.quantisation import (
    Quantised,
    Quantiser,
    apply_straight_through,
)
from workflow_scripts.models.sq_transformer.settings import Settings
from workflow_scripts.models.transformer.model import Cache, EncoderOutput, Seq2Seq, Seq2SeqOutput

END, UNKNOWN = 2, 3


def make_next_tokens(target_in: Tensor) -> Tensor:
    """Return the tokens that the decoder must predict: its input [B, T] moved left by one, then the end symbol."""
    moved = nn.functional.pad(target_in[:, 1:], (0, 1))
    return moved.masked_fill(moved.eq(0) & target_in.ne(0), END)


def sample_masked_positions(lengths: Tensor) -> Tensor:
    """Sample one position per sentence, uniformly over all but the end symbol: lengths [B] -> positions [B]."""
    return (torch.rand(lengths.shape, device=lengths.device) * (lengths - 1)).long()


class SentencePredictor(nn.Module):
    """p(z_n | context), with logits h Z^T + b and the codebook Z.

    The context is the whole input sentence, in which position n is masked, or with `causal` the positions up to n.
    """

    def __init__(self, layers: int, settings: Settings, codes: int, causal: bool):
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(settings) for _ in range(layers))
        self.bias = _bias(codes, settings.width)
        self.causal = causal

    def forward(
        self, inputs: Tensor, mask: Tensor, codebook: Tensor, at: Tensor | None = None
    ) -> Tensor:
        """Return logits [S, B, K] for inputs [S, B, d], a padding mask [B, 1, 1, S] and codebook [K, d].

        With `at` (positions [B]) return that position of each sentence only: [1, B, K].
        """
        if self.causal:
            # Padding is at the end, where no real position sees it.
            mask = make_causal_mask(inputs.size(0), inputs.device)
        for layer in self.layers[:-1]:
            inputs = layer(inputs, mask)
        return nn.functional.linear(self.layers[-1](inputs, mask, at=at), codebook, self.bias)


class CrossPredictor(nn.Module):
    """p(z_t | input up to t, the encoder's output x_L), with logits h Z^T + b and the codebook Z (official code)."""

    def __init__(self, layers: int, settings: Settings, codes: int):
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(settings) for _ in range(layers))
        self.bias = _bias(codes, settings.width)

    def forward(
        self, inputs: Tensor, memory: Tensor, memory_mask: Tensor, codebook: Tensor
    ) -> Tensor:
        """Return logits [T, B, K] for inputs [T, B, d], x_L [S, B, d], its mask [B, 1, 1, S], codebook [K, d]."""
        mask = make_causal_mask(inputs.size(0), inputs.device)
        for layer in self.layers:
            inputs = layer(inputs, layer.start(memory, memory), memory_mask, mask)
        return nn.functional.linear(inputs, codebook, self.bias)


def _bias(codes: int, width: int) -> nn.Parameter:
    return nn.Parameter(torch.empty(codes).uniform_(-(width**-0.5), width**-0.5))


class SQTransformer(Seq2Seq):
    """Seq2Seq with a quantiser on each side and, in training, the cluster predictors.

    In eval mode only the word logits are computed. SRL is then exactly the plain Transformer; SAL needs the codes.

    Terms of a training step, each prefixed by "source_" or "target_". X is K, or K + 1 with a mask code:
      embedded [S, B, d], codes [S, B], vectors [S, B, d]: embeddings e, their hard codes z, and the rows of Z
      real [S, B]: False on padding
      posterior [..., X], prior [..., X], predicted [...]: scores of q(z | x), logits of p(z | context), and the
        positions at which a code is predicted: all of them [S, B], or one of each sentence [B]
      marginal [..., X], averaged [...]: scores of q(z | x), and the positions over which q(Z) is the mean
      output [S, B, d], output_scores [S, B, X], output_vectors [S, B, d]: final states, their scores, nearest codes
      next_codes [S, B], next_real [S, B]: the code that an output must predict, and whether there is one
      layers [layers, S, 2 B, d]: words and codes after each layer (with SRL)
    The terms from posterior to averaged exist only with predictors.
    """

    settings: Settings

    def __init__(self, settings: Settings, source_vocabulary: int, target_vocabulary: int):
        super().__init__(settings, source_vocabulary, target_vocabulary)
        self.guided = settings.attention == "sal"
        self.predicts_clusters = settings.clustering != "none"
        self.masked = settings.source_predictor == "masked"
        mask_code = self.masked and settings.clustering == "brown"
        self.source_quantiser = Quantiser(settings.source_codes, settings, mask_code)
        self.target_quantiser = Quantiser(settings.target_codes, settings)
        if self.predicts_clusters:
            source = (settings.source_predictor_layers, settings, settings.source_codes + mask_code)
            self.source_predictor = SentencePredictor(*source, causal=not self.masked)
            target = (settings.target_predictor_layers, settings, settings.target_codes)
            crosses = settings.target_predictor == "cross"
            self.target_predictor = (
                CrossPredictor(*target) if crosses else SentencePredictor(*target, causal=True)
            )

    def assign_codes(self, side: str, ids: Tensor) -> Tensor:
        """Return the code of each word of a side, "source" or "target", without dropout: ids [...] -> codes [...]."""
        embedding, quantiser = (
            getattr(self, f"{side}_embedding"),
            getattr(self, f"{side}_quantiser"),
        )
        return quantiser(embedding(ids) * self.settings.width**0.5).codes

    def finish_step(self) -> None:
        """Move the codes towards their words. The training loop calls this after each optimiser step."""
        self.source_quantiser.finish_step()
        self.target_quantiser.finish_step()

    def embed_source(self, source: Tensor) -> Tensor:
        """Return the encoder's input: [B, S] -> [S, B, d], with SAL also the codes, [S, 2 B, d]."""
        words = super().embed_source(source)
        return (
            torch.cat([words, self.source_quantiser(words).vectors], dim=1)
            if self.guided
            else words
        )

    def embed_target(self, target_in: Tensor, offset: int = 0) -> Tensor:
        """Return the decoder's input: [B, T] -> [T, B, d], with SAL also the codes, [T, 2 B, d]."""
        words = super().embed_target(target_in, offset)
        return (
            torch.cat([words, self.target_quantiser(words).vectors], dim=1)
            if self.guided
            else words
        )

    def _keeps_codes(self) -> bool:
        """Whether the objective reads the final states of the codes."""
        return self.training and self.settings.next_code_stream == "code"

    def run_encoder(self, states: Tensor, mask: Tensor) -> list[Tensor]:
        """See Seq2Seq. With SAL the last layer drops the codes if nothing reads them."""
        drop_codes = self.guided and self.settings.cross_query == "code" and not self._keeps_codes()
        last = self.encoder[-1] if drop_codes else None
        return [
            states := layer(states, mask, self.guided, words_only=layer is last)
            for layer in self.encoder
        ]

    def start(self, memory: EncoderOutput) -> Cache:
        """Return the cache before the first position. With SAL its keys and values depend on `cross_query`."""
        if not self.guided:
            return super().start(memory)
        states, layers = memory.states, []
        for layer in self.decoder:
            words = select_words(states) if states.size(1) > memory.mask.size(0) else states
            if self.settings.cross_query == "code":
                key, value = words, words
            else:
                value = words if layer is self.decoder[-1] and not self._keeps_codes() else states
                key = select_codes(states) if self.settings.cross_query == "systematic" else value
            layers.append(layer.start(key, value))
        return Cache(layers, memory.mask)

    def run_decoder(self, states: Tensor, cache: Cache, mask: Tensor | None) -> list[Tensor]:
        """See Seq2Seq. With SAL the last layer drops the codes if nothing reads them."""
        last = self.decoder[-1] if self.guided and not self._keeps_codes() else None
        guided = (self.guided, self.guided and self.settings.cross_query != "word")
        return [
            states := layer(
                states, layer_cache, cache.mask, mask, *guided, words_only=layer is last
            )
            for layer, layer_cache in zip(self.decoder, cache.layers, strict=True)
        ]

    def forward(self, source: Tensor, target_in: Tensor) -> Seq2SeqOutput:
        """Return word logits [B, T, V] for source [B, S] and target_in [B, T], in training with the terms above."""
        if not self.training:
            return super().forward(source, target_in)
        memory, terms = self._train_encoder(source)
        logits, target_terms = self._train_decoder(memory, target_in)
        return Seq2SeqOutput(logits, terms | target_terms)

    def _streams(self, words: Tensor, codes: Tensor) -> Tensor:
        """Join words and codes [S, B, d] to the input of the layers, [S, 2 B, d]; without SAL and SRL words alone."""
        return words if self.settings.attention == "none" else torch.cat([words, codes], dim=1)

    def _code_inputs(self, words: Tensor, quantised: Quantised) -> Tensor:
        """Return the stream of codes before layer 1, [S, B, d], whose gradient goes to the words or to the codes."""
        return (
            apply_straight_through(quantised.vectors, words)
            if self.settings.straight_through
            else quantised.vectors
        )

    def _train_encoder(self, source: Tensor) -> tuple[EncoderOutput, dict[str, Tensor]]:
        """Return (encoder's output, terms of the source) for source [B, S]."""
        mask, real = make_padding_mask(source), source.t().ne(0)
        words = self.embed(self.source_embedding, source)
        quantised = self.source_quantiser(words)
        self.source_quantiser.observe(words, quantised.codes, real)
        codes = self._code_inputs(words, quantised)
        outputs = self.run_encoder(self._streams(words, codes), mask)
        next_codes, next_real = (
            nn.functional.pad(x[1:], (0, 0, 0, 1)) for x in (quantised.codes, real)
        )
        terms = self._common_terms(self.source_quantiser, words, quantised, real, outputs)
        terms |= {"next_codes": next_codes, "next_real": next_real}
        if self.predicts_clusters:
            terms |= self._predict_source(source, mask, real, words, codes, quantised)
        return EncoderOutput(outputs[-1], mask), {
            f"source_{name}": value for name, value in terms.items()
        }

    def _train_decoder(
        self, memory: EncoderOutput, target_in: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return (word logits [B, T, V], terms of the target) for target_in [B, T]; codes are of the next words."""
        real, mask = target_in.t().ne(0), make_causal_mask(target_in.size(1), target_in.device)
        # Words, the codes that enter the decoder, and the codes to predict get independent dropout.
        words = self.embed(self.target_embedding, target_in)
        input_words = self.embed(self.target_embedding, target_in)
        next_words = self.embed(self.target_embedding, make_next_tokens(target_in))
        quantised = self.target_quantiser(next_words)
        self.target_quantiser.observe(next_words, quantised.codes, real)
        codes = self._code_inputs(input_words, self.target_quantiser(input_words))
        outputs = self.run_decoder(self._streams(words, codes), self.start(memory), mask)
        terms = self._common_terms(self.target_quantiser, next_words, quantised, real, outputs)
        terms |= {"next_codes": quantised.codes, "next_real": real}
        if self.predicts_clusters:
            inputs = words if self.settings.clustering == "mmi" else codes
            codebook, encoded = (
                self.target_quantiser.codebook,
                memory.states[:, : target_in.size(0)],
            )
            if self.settings.target_predictor == "cross":
                prior = self.target_predictor(inputs, encoded, memory.mask, codebook)
            else:
                prior = self.target_predictor(inputs, mask, codebook)
            terms |= {"prior": prior, "posterior": quantised.scores, "predicted": real}
            terms |= {"marginal": quantised.scores, "averaged": real}
        logits = self.project(outputs[-1][:, : target_in.size(0)])
        return logits, {f"target_{name}": value for name, value in terms.items()}

    def _common_terms(
        self,
        quantiser: Quantiser,
        words: Tensor,
        quantised: Quantised,
        real: Tensor,
        outputs: list[Tensor],
    ) -> dict[str, Tensor]:
        """Return the terms that both sides have; `outputs` of the layers are [S, B, d] or [S, 2 B, d] each."""
        output = outputs[-1]
        if output.size(1) > words.size(1):
            output = (
                select_codes(output)
                if self.settings.next_code_stream == "code"
                else select_words(output)
            )
        nearest = quantiser(output)
        terms = {
            "embedded": words,
            "codes": quantised.codes,
            "vectors": quantised.vectors,
            "real": real,
        }
        terms |= {
            "output": output,
            "output_scores": nearest.scores,
            "output_vectors": nearest.vectors,
        }
        return terms | (
            {"layers": torch.stack(outputs)} if self.settings.attention == "srl" else {}
        )

    def _predict_source(
        self,
        source: Tensor,
        mask: Tensor,
        real: Tensor,
        words: Tensor,
        codes: Tensor,
        quantised: Quantised,
    ) -> dict[str, Tensor]:
        """Return prior to averaged: one masked position of each sentence is predicted, or all but the first."""
        mmi, quantiser = self.settings.clustering == "mmi", self.source_quantiser
        if not self.masked:
            inputs = words if mmi else codes
            prior = self.source_predictor(inputs[:-1], mask[..., :-1], quantiser.codebook)
            predicted = {"prior": prior, "posterior": quantised.scores[1:], "predicted": real[1:]}
            return predicted | {"marginal": quantised.scores, "averaged": real}
        at = sample_masked_positions(real.sum(dim=0))
        masked = torch.arange(source.size(1), device=source.device)[:, None].eq(at)  # [S, B]
        if mmi:
            inputs = self.embed(self.source_embedding, source.masked_fill(masked.t(), UNKNOWN))
        else:
            codes_with_mask = quantised.codes.masked_fill(masked, quantiser.codes)
            inputs = nn.functional.embedding(codes_with_mask, quantiser.codebook)
        prior = self.source_predictor(inputs, mask, quantiser.codebook, at)[0]
        posterior = select_positions(quantised.scores, at)[0]
        every_sentence = torch.ones_like(at, dtype=torch.bool)
        predicted = {"prior": prior, "posterior": posterior, "predicted": every_sentence}
        return predicted | {"marginal": posterior, "averaged": every_sentence}


def build(settings: Settings, source_vocabulary: int, target_vocabulary: int) -> SQTransformer:
    """Build the model with random weights."""
    return SQTransformer(settings, source_vocabulary, target_vocabulary)
