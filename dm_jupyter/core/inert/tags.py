"""Which elements and attributes of HTML and SVG pass."""

from __future__ import annotations

__all__ = [
    "EMPTY",
    "FRAGMENTS",
    "PAINTED",
    "PICTURES",
    "PLAIN",
    "SHAPES",
    "SPOKEN",
    "TAGS",
]

_HTML = """
a abbr address article aside audio b bdi bdo blockquote br caption center cite code col colgroup dd
del details dfn div dl dt em figcaption figure font footer h1 h2 h3 h4 h5 h6 header hr i img input
ins kbd label legend li main mark meter nav ol p picture pre progress q rp rt ruby s samp section
small source span strike strong sub summary sup table tbody td tfoot th thead time tr tt u ul var
video wbr
"""
_SVG = """
circle clipPath defs desc ellipse feBlend feColorMatrix feComponentTransfer feComposite
feConvolveMatrix feDiffuseLighting feDisplacementMap feDistantLight feDropShadow feFlood feFuncA
feFuncB feFuncG feFuncR feGaussianBlur feMerge feMergeNode feMorphology feOffset fePointLight
feSpecularLighting feSpotLight feTile feTurbulence filter g image line linearGradient marker mask
path pattern polygon polyline radialGradient rect stop svg switch symbol text textPath tspan use
"""
SHAPES = frozenset(name.lower() for name in _SVG.split())
"""Elements of SVG, which `/>` closes."""
TAGS = {name.lower(): name for name in (_HTML + _SVG).split()}
"""Elements that pass, in lower case, to how they are written."""
EMPTY = frozenset({"br", "col", "hr", "img", "input", "source", "wbr"})
"""Elements of HTML that hold nothing."""

PICTURES = {"img": "src", "source": "src", "audio": "src", "video": "src"}
"""Elements that are there for what they load, and the attribute that names it."""
SPOKEN = {
    "applet": "an applet", "audio": "a sound", "embed": "an object", "frame": "a page",
    "iframe": "a page", "image": "a picture", "img": "a picture", "input": "a picture",
    "object": "an object", "video": "a film",
}  # fmt: skip
"""What stood in the place of an element that is left out."""
FRAGMENTS = frozenset({
    "filter", "lineargradient", "marker", "mask", "pattern", "radialgradient", "textpath", "use",
})  # fmt: skip
"""Elements whose `href` may name a part of the same document."""

_GLOBAL = """
align alt aria-describedby aria-expanded aria-hidden aria-label aria-labelledby bgcolor border
cellpadding cellspacing checked class color colspan controls datetime dir disabled face for frame
headers height hidden high id lang loop low max min muted nowrap open optimum reversed role rowspan
rules scope size span start summary tabindex title type valign value width
"""
_DRAWING = """
alignment-baseline amplitude azimuth baseFrequency baseline-shift bias clip-rule clipPathUnits
color-interpolation color-interpolation-filters cx cy d diffuseConstant direction divisor
dominant-baseline dx dy edgeMode elevation exponent fill-opacity fill-rule filterUnits flood-color
flood-opacity font-family font-size font-stretch font-style font-variant font-weight fr fx fy
gradientTransform gradientUnits image-rendering in in2 intercept k1 k2 k3 k4 kernelMatrix
kernelUnitLength lengthAdjust letter-spacing lighting-color limitingConeAngle markerHeight
markerUnits markerWidth maskContentUnits maskUnits mode numOctaves offset opacity operator order
orient overflow paint-order pathLength patternContentUnits patternTransform patternUnits points
pointsAtX pointsAtY pointsAtZ preserveAlpha preserveAspectRatio primitiveUnits r radius refX refY
result rotate rx ry scale seed shape-rendering slope specularConstant specularExponent spreadMethod
startOffset stdDeviation stitchTiles stop-color stop-opacity stroke-dasharray stroke-dashoffset
stroke-linecap stroke-linejoin stroke-miterlimit stroke-opacity stroke-width surfaceScale
tableValues targetX targetY text-anchor text-decoration text-rendering textLength transform
transform-origin unicode-bidi values vector-effect version viewBox visibility word-spacing
writing-mode x x1 x2 xChannelSelector xml:space y y1 y2 yChannelSelector z
"""
PLAIN = {name.lower(): name for name in (_GLOBAL + _DRAWING).split()}
"""Attributes that load nothing, in lower case, to how they are written."""
PAINTED = frozenset({
    "clip-path", "cursor", "fill", "filter", "marker", "marker-end", "marker-mid", "marker-start",
    "mask", "stroke",
})  # fmt: skip
"""Attributes that hold the value of a CSS property."""
