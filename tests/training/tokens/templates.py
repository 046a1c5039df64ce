"""Three chat templates of the kinds that models have."""

from __future__ import annotations

from dataclasses import dataclass

from training.tokens.chat_template import ChatTemplate

CHATML = """\
{% for message in messages %}
{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}
{% endfor %}
{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""

REWRITING = """\
{% for message in messages %}
{% set content = message['content'] %}
{% if message['role'] == 'assistant' and '</think>' in content %}
{% set content = content.split('</think>')[-1].lstrip('\\n') %}
{% endif %}
{{ '<|im_start|>' + message['role'] + '\\n' + content + '<|im_end|>' + '\\n' }}
{% endfor %}
{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
"""Leaves out what the model thought in earlier turns."""

LLAMA_LIKE = """\
{{ bos_token }}
{%- for message in messages %}
{{- '<|head|>' + message['role'] + '<|tail|>\\n\\n' + message['content'] | trim + '<|eot|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|head|>assistant<|tail|>\\n\\n' }}{% endif %}"""
"""Begins with a mark, and trims what is said."""


@dataclass(frozen=True)
class Kind:
    name: str
    source: str
    closing: str
    bos: str = ""

    @property
    def template(self) -> ChatTemplate:
        return ChatTemplate(self.source, self.bos, self.closing)

    @property
    def rewrites(self) -> bool:
        return self.source == REWRITING


KINDS = (
    Kind("chatml", CHATML, "<|im_end|>"),
    Kind("rewriting", REWRITING, "<|im_end|>"),
    Kind("llama-like", LLAMA_LIKE, "<|eot|>", "<s>"),
)
