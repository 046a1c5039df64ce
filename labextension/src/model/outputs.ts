/**
 * What the cells of a run showed, short: enough for a glance in the panel, never a whole output.
 */
import type { Operation } from '../protocol.gen';

/** One output of a cell, as the panel shows it. */
export interface IOutputPicture {
  /** The stream's name, so that more of the same joins it; empty for any other output. */
  readonly stream: string;
  readonly text: string;
  /** A bitmap as a `data:` address; empty where there is none. */
  readonly image: string;
  readonly isError: boolean;
  /** Whether it is nothing that the panel can show: a figure with a script, a widget. */
  readonly isElsewhere: boolean;
}

export type Outputs = { readonly [cellId: string]: readonly IOutputPicture[] };

/** A cell can make any number of outputs; those after these are not shown. */
const MOST = 12;
/** Of a long text both ends are kept, each so long. */
const END_CHARS = 600;
/** In base64. */
const MOST_IMAGE_CHARS = 4_000_000;
const IMAGE_TYPES = ['image/png', 'image/jpeg'];
// Colours of a terminal.
// eslint-disable-next-line no-control-regex
const ESCAPES = /\x1b\[[0-9;]*[A-Za-z]/g;

/** Returns the outputs after one more operation; the same object where it changes none. */
export function withOutput(outputs: Outputs, operation: Operation): Outputs {
  switch (operation.op) {
    case 'append_output': {
      const { cell_id: cellId, output } = operation;
      const now = appended(outputs[cellId] ?? [], pictureOf(output));
      return now ? { ...outputs, [cellId]: now } : outputs;
    }
    case 'replace_output': {
      const { cell_id: cellId, index, output } = operation;
      const now = outputs[cellId] ?? [];
      return index < now.length
        ? { ...outputs, [cellId]: now.with(index, pictureOf(output)) }
        : outputs;
    }
    case 'clear_outputs':
      return { ...outputs, [operation.cell_id]: [] };
    default:
      return outputs;
  }
}

/** Returns `null` where there are too many already. */
function appended(
  outputs: readonly IOutputPicture[],
  next: IOutputPicture
): readonly IOutputPicture[] | null {
  const last = outputs[outputs.length - 1];
  if (last?.stream && last.stream === next.stream) {
    const joined = { ...last, text: shortened(last.text + next.text) };
    return [...outputs.slice(0, -1), joined];
  }
  return outputs.length < MOST ? [...outputs, next] : null;
}

/** The kernel made the output: nothing in it is sure to be there, or to be what it should be. */
function pictureOf(output: { [key: string]: unknown }): IOutputPicture {
  const empty = {
    stream: '',
    text: '',
    image: '',
    isError: false,
    isElsewhere: false
  };
  switch (output.output_type) {
    case 'stream':
      return {
        ...empty,
        stream: String(output.name),
        text: shortened(textOf(output.text))
      };
    case 'error':
      return {
        ...empty,
        text: shortened(`${textOf(output.ename)}: ${textOf(output.evalue)}`),
        isError: true
      };
    default: {
      const data = (output.data ?? {}) as { [type: string]: unknown };
      const text = shortened(textOf(data['text/plain']));
      const image = imageOf(data);
      const isElsewhere = !text && !image && Object.keys(data).length > 0;
      return { ...empty, text, image, isElsewhere };
    }
  }
}

function imageOf(data: { [type: string]: unknown }): string {
  const type = IMAGE_TYPES.find(one => typeof data[one] === 'string');
  const content = type ? textOf(data[type]).replace(/\s/g, '') : '';
  return content && content.length <= MOST_IMAGE_CHARS
    ? `data:${type};base64,${content}`
    : '';
}

function textOf(value: unknown): string {
  const text = Array.isArray(value) ? value.join('') : (value ?? '');
  return typeof text === 'string' ? text.replace(ESCAPES, '') : '';
}

function shortened(text: string): string {
  return text.length <= 2 * END_CHARS + 3
    ? text
    : `${text.slice(0, END_CHARS)}\n…\n${text.slice(-END_CHARS)}`;
}
