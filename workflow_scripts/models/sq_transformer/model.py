"""SQ-Transformer (Jiang et al. 2024).

Words are clustered into codes (SoVQ), which give the attention (SAL, SRL).
"""

import torch
from torch import Tensor, nn

from workflow_scripts.data.token_ids import EOS, PAD, UNK
from workflow_scripts.models.layers.layer_list import LayerList
from workflow_scripts.models.layers.transformer import (
    DecoderLayer,
    EncoderLayer,
    make_causal_mask,
    make_padding_mask,
    select_codes,
    select_positions,
)
from workflow_scripts.models.sq_transformer.quantisation import (
    Quantised,
    Quantiser,
    apply_straight_through,
)
from workflow_scripts.models.sq_transformer.settings import Settings
from workflow_scripts.models.sq_transformer.terms import (
    ClusterPrediction,
    SideTerms,
    SQTransformerOutput,
    TrainingTerms,
)
from workflow_scripts.models.transformer.model import Cache, EncoderOutput, Seq2Seq


def make_next_tokens(target_in: Tensor) -> Tensor:
    """Return the tokens that the decoder must predict.

    They are its input [B, T] moved left by one, then the end symbol; padding stays padding.
    """
    moved = nn.functional.pad(target_in[:, 1:], (0, 1))
    is_last = moved.eq(PAD) & target_in.ne(PAD)
    return moved.masked_fill(is_last, EOS)


def drop_codes(states: Tensor, sentences: int) -> Tensor:
    """Return the states [S, B, d] of the words of B sentences.

    states: [S, B, d], or [S, 2 B, d] if those of the codes follow.
    """
    return states[:, :sentences]


def sample_masked_positions(lengths: Tensor) -> Tensor:
    """Sample one position per sentence, uniformly over all but the end symbol: [B] -> [B]."""
    return (torch.rand(lengths.shape, device=lengths.device) * (lengths - 1)).long()


class SentencePredictor(nn.Module):
    """p(z_n | context), with logits h Z^T + b and the codebook Z.

    The context is the whole input sentence, in which position n is masked, or with `causal` the
    positions up to n.
    """

    def __init__(self, layers: int, settings: Settings, n_codes: int, causal: bool):
        super().__init__()
        self.layers = LayerList(EncoderLayer(settings) for _ in range(layers))
        self.bias = _make_bias(n_codes, settings.width)
        self.causal = causal

    def forward(
        self, inputs: Tensor, mask: Tensor, codebook: Tensor, at: Tensor | None = None
    ) -> Tensor:
        """Return logits [S, B, K] for inputs [S, B, d].

        mask: of padding, [B, 1, 1, S]. codebook [K, d].
        With `at` (positions [B]) return that position of each sentence only: [1, B, K].
        """
        if self.causal:
            # Padding is at the end, where no real position sees it.
            mask = make_causal_mask(inputs.size(0), inputs.device)
        for layer in self.layers[:-1]:
            inputs = layer(inputs, mask)
        states = self.layers[-1](inputs, mask, at=at)
        return nn.functional.linear(states, codebook, self.bias)


class CrossPredictor(nn.Module):
    """p(z_t | input up to t, the encoder's output x_L), with logits h Z^T + b and the codebook Z.

    It is the predictor of the official code.
    """

    def __init__(self, layers: int, settings: Settings, n_codes: int):
        super().__init__()
        self.layers = LayerList(DecoderLayer(settings) for _ in range(layers))
        self.bias = _make_bias(n_codes, settings.width)

    def forward(
        self, inputs: Tensor, memory: Tensor, memory_mask: Tensor, codebook: Tensor
    ) -> Tensor:
        """Return logits [T, B, K] for inputs [T, B, d].

        memory: x_L [S, B, d]. memory_mask: its padding, [B, 1, 1, S]. codebook [K, d].
        """
        mask = make_causal_mask(inputs.size(0), inputs.device)
        for layer in self.layers:
            inputs = layer(inputs, layer.start_cache(memory, memory), memory_mask, mask)
        return nn.functional.linear(inputs, codebook, self.bias)


def _make_bias(n_codes: int, width: int) -> nn.Parameter:
    """Make a bias of each code [K], with the initial values of nn.Linear of this width."""
    limit = width**-0.5
    return nn.Parameter(torch.empty(n_codes).uniform_(-limit, limit))


class SQTransformer(Seq2Seq):
    """Seq2Seq with a quantiser on each side and, in training, the cluster predictors.

    In eval mode only the word logits are computed. SRL is then exactly the plain Transformer; SAL
    needs the codes. In training the logits come with the terms of the objective (`TrainingTerms`).
    """

    settings: Settings

    def __init__(self, settings: Settings, source_vocabulary: int, target_vocabulary: int):
        super().__init__(settings, source_vocabulary, target_vocabulary)
        self.guided = settings.attention == "sal"
        self.predicts_clusters = settings.clustering != "none"
        self.masked = settings.source_predictor == "masked"
        has_mask_code = self.masked and settings.clustering == "brown"
        self.source_quantiser = Quantiser(settings.source_codes, settings, has_mask_code)
        self.target_quantiser = Quantiser(settings.target_codes, settings)
        if self.predicts_clusters:
            self.source_predictor = SentencePredictor(
                settings.source_predictor_layers,
                settings,
                settings.source_codes + has_mask_code,
                causal=not self.masked,
            )
            layers = settings.target_predictor_layers
            n_codes = settings.target_codes
            if settings.target_predictor == "cross":
                self.target_predictor = CrossPredictor(layers, settings, n_codes)
            else:
                self.target_predictor = SentencePredictor(layers, settings, n_codes, causal=True)

    def assign_codes(self, side: str, ids: Tensor) -> Tensor:
        """Return the code of each word of a side, "source" or "target": ids [...] -> codes [...].

        There is no dropout.
        """
        if side == "source":
            table = self.source_embedding
            quantiser = self.source_quantiser
        else:
            table = self.target_embedding
            quantiser = self.target_quantiser
        return quantiser(table(ids) * self.settings.width**0.5).codes

    def finish_step(self) -> None:
        """Move the codes towards their words.

        The training loop calls this after each optimiser step.
        """
        self.source_quantiser.finish_step()
        self.target_quantiser.finish_step()

    def embed_source(self, source: Tensor) -> Tensor:
        """Return the encoder's input: [B, S] -> [S, B, d], with SAL also the codes, [S, 2 B, d]."""
        words = super().embed_source(source)
        if not self.guided:
            return words
        return torch.cat([words, self.source_quantiser(words).vectors], dim=1)

    def embed_target(self, target_in: Tensor, offset: int = 0) -> Tensor:
        """Return the decoder's input: [B, T] -> [T, B, d], with SAL also the codes, [T, 2 B, d]."""
        words = super().embed_target(target_in, offset)
        if not self.guided:
            return words
        return torch.cat([words, self.target_quantiser(words).vectors], dim=1)

    def _is_code_output_read(self) -> bool:
        """Whether the objective reads the final states of the codes."""
        return self.training and self.settings.next_code_stream == "code"

    def run_encoder(self, states: Tensor, mask: Tensor) -> list[Tensor]:
        """See Seq2Seq. With SAL the last layer drops the codes if nothing reads them."""
        outputs = []
        for layer in self.encoder:
            words_only = layer is self.encoder[-1] and self._can_drop_encoder_codes()
            states = layer(states, mask, self.guided, words_only=words_only)
            outputs.append(states)
        return outputs

    def _can_drop_encoder_codes(self) -> bool:
        """Whether neither the decoder nor the objective reads the codes' final states."""
        if not self.guided or self._is_code_output_read():
            return False
        return self.settings.cross_query == "code"

    def start_cache(self, memory: EncoderOutput) -> Cache:
        """Return the cache before the first position.

        With SAL its keys and values depend on `cross_query`.
        """
        if not self.guided:
            return super().start_cache(memory)
        states = memory.states
        words = drop_codes(states, memory.mask.size(0))
        layers = []
        for layer in self.decoder:
            value = states
            if self.settings.cross_query == "code" or self._can_drop_decoder_codes(layer):
                value = words
            key = value
            if self.settings.cross_query == "systematic":
                key = select_codes(states)
            layers.append(layer.start_cache(key, value))
        return Cache(layers, memory.mask)

    def _can_drop_decoder_codes(self, layer: DecoderLayer) -> bool:
        """Whether a layer of the decoder is the last one and nothing reads its codes."""
        return layer is self.decoder[-1] and not self._is_code_output_read()

    def run_decoder(self, states: Tensor, cache: Cache, mask: Tensor | None) -> list[Tensor]:
        """See Seq2Seq. With SAL the last layer drops the codes if nothing reads them."""
        guided_cross = self.guided and self.settings.cross_query != "word"
        outputs = []
        for layer, layer_cache in zip(self.decoder, cache.layers, strict=True):
            states = layer(
                states,
                layer_cache,
                cache.mask,
                mask,
                guided=self.guided,
                guided_cross=guided_cross,
                words_only=self.guided and self._can_drop_decoder_codes(layer),
            )
            outputs.append(states)
        return outputs

    def forward(self, source: Tensor, target_in: Tensor) -> SQTransformerOutput:
        """Return word logits [B, T, V] for source [B, S] and target_in [B, T].

        In training they come with the terms, and the quantisers observe their words.
        """
        if not self.training:
            return SQTransformerOutput(super().forward(source, target_in).logits)
        memory, source_terms = self._encode_in_training(source)
        logits, target_terms = self._decode_in_training(memory, target_in)
        return SQTransformerOutput(logits, TrainingTerms(source_terms, target_terms))

    def _join_streams(self, words: Tensor, code_stream: Tensor) -> Tensor:
        """Join words and codes, each [S, B, d], to the input of the layers, [S, 2 B, d].

        Without SAL and SRL the words alone are the input.
        """
        if self.settings.attention == "none":
            return words
        return torch.cat([words, code_stream], dim=1)

    def _make_code_stream(self, words: Tensor, quantised: Quantised) -> Tensor:
        """Return the stream of codes before layer 1, [S, B, d]: the codebook's rows of the words.

        With `straight_through` their gradient goes to `words` [S, B, d], else to the codebook.
        """
        if self.settings.straight_through:
            return apply_straight_through(quantised.vectors, words)
        return quantised.vectors

    def _encode_in_training(self, source: Tensor) -> tuple[EncoderOutput, SideTerms]:
        """Return (encoder's output, terms of the source) for source [B, S]."""
        mask = make_padding_mask(source)
        real = source.t().ne(PAD)
        words = self.embed(self.source_embedding, source)
        quantised = self.source_quantiser(words)
        self.source_quantiser.observe(words, quantised.codes, real)
        code_stream = self._make_code_stream(words, quantised)
        outputs = self.run_encoder(self._join_streams(words, code_stream), mask)
        output = self._select_output(outputs[-1], source.size(0))
        nearest = self.source_quantiser(output)
        prediction = None
        if self.predicts_clusters:
            prediction = self._predict_source(source, mask, words, code_stream, quantised)
        terms = SideTerms(
            embedded=words,
            quantised=quantised,
            real=real,
            output=output,
            nearest=nearest,
            # An output must predict the code of the next word.
            next_codes=nn.functional.pad(quantised.codes[1:], (0, 0, 0, 1)),
            next_real=nn.functional.pad(real[1:], (0, 0, 0, 1)),
            layers=self._stack_layers(outputs),
            prediction=prediction,
        )
        return EncoderOutput(outputs[-1], mask), terms

    def _decode_in_training(
        self, memory: EncoderOutput, target_in: Tensor
    ) -> tuple[Tensor, SideTerms]:
        """Return (word logits [B, T, V], terms of the target) for target_in [B, T].

        The codes that enter the decoder are those of its input words. The codes in the terms, which
        are to be predicted, are those of the next words.
        """
        real = target_in.t().ne(PAD)
        mask = make_causal_mask(target_in.size(1), target_in.device)
        # The embeddings of the words that enter the decoder, of the codes that enter it, and of the
        # codes to predict have independent dropout.
        word_stream = self.embed(self.target_embedding, target_in)
        words_to_quantise = self.embed(self.target_embedding, target_in)
        next_words = self.embed(self.target_embedding, make_next_tokens(target_in))
        quantised = self.target_quantiser(next_words)
        self.target_quantiser.observe(next_words, quantised.codes, real)
        quantised_input = self.target_quantiser(words_to_quantise)
        code_stream = self._make_code_stream(words_to_quantise, quantised_input)
        states = self._join_streams(word_stream, code_stream)
        outputs = self.run_decoder(states, self.start_cache(memory), mask)
        output = self._select_output(outputs[-1], target_in.size(0))
        nearest = self.target_quantiser(output)
        prediction = None
        if self.predicts_clusters:
            inputs = word_stream if self.settings.clustering == "mmi" else code_stream
            prediction = ClusterPrediction(
                prior=self._predict_target(inputs, memory, mask),
                posterior=quantised.scores,
                predicted=real,
                marginal=quantised.scores,
                averaged=real,
            )
        terms = SideTerms(
            embedded=next_words,
            quantised=quantised,
            real=real,
            output=output,
            nearest=nearest,
            next_codes=quantised.codes,
            next_real=real,
            layers=self._stack_layers(outputs),
            prediction=prediction,
        )
        return self.project(drop_codes(outputs[-1], target_in.size(0))), terms

    def _predict_target(self, inputs: Tensor, memory: EncoderOutput, mask: Tensor) -> Tensor:
        """Return the logits [T, B, K] of p(z_t | context) for inputs [T, B, d], a causal mask."""
        codebook = self.target_quantiser.codebook
        if self.settings.target_predictor == "cross":
            words = memory.states[:, : inputs.size(1)]
            return self.target_predictor(inputs, words, memory.mask, codebook)
        return self.target_predictor(inputs, mask, codebook)

    def _select_output(self, states: Tensor, sentences: int) -> Tensor:
        """Return the final states that the objective reads, of B sentences: [S, B, d].

        states: of the last layer, words [S, B, d], or words and codes [S, 2 B, d].
        """
        if self.settings.next_code_stream == "code" and states.size(1) > sentences:
            return select_codes(states)
        return drop_codes(states, sentences)

    def _stack_layers(self, outputs: list[Tensor]) -> Tensor | None:
        """Return words and codes after each layer [layers, S, 2 B, d], with SRL."""
        if self.settings.attention != "srl":
            return None
        return torch.stack(outputs)

    def _predict_source(
        self,
        source: Tensor,
        mask: Tensor,
        words: Tensor,
        code_stream: Tensor,
        quantised: Quantised,
    ) -> ClusterPrediction:
        """Predict the code of one masked word of each sentence.

        With the causal predictor: the codes of all words but the first.
        """
        quantiser = self.source_quantiser
        real = source.t().ne(PAD)
        reads_words = self.settings.clustering == "mmi"
        if not self.masked:
            inputs = words if reads_words else code_stream
            return ClusterPrediction(
                prior=self.source_predictor(inputs[:-1], mask[..., :-1], quantiser.codebook),
                posterior=quantised.scores[1:],
                predicted=real[1:],
                marginal=quantised.scores,
                averaged=real,
            )
        at = sample_masked_positions(real.sum(dim=0))
        masked = torch.arange(source.size(1), device=source.device)[:, None].eq(at)  # [S, B]
        if reads_words:
            inputs = self.embed(self.source_embedding, source.masked_fill(masked.t(), UNK))
        else:
            codes_with_mask = quantised.codes.masked_fill(masked, quantiser.mask_code)
            inputs = nn.functional.embedding(codes_with_mask, quantiser.codebook)
        posterior = select_positions(quantised.scores, at)[0]
        every_sentence = torch.ones_like(at, dtype=torch.bool)
        return ClusterPrediction(
            prior=self.source_predictor(inputs, mask, quantiser.codebook, at)[0],
            posterior=posterior,
            predicted=every_sentence,
            marginal=posterior,
            averaged=every_sentence,
        )


def build(settings: Settings, source_vocabulary: int, target_vocabulary: int) -> SQTransformer:
    """Build the model with random weights."""
    return SQTransformer(settings, source_vocabulary, target_vocabulary)
