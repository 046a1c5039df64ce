import { ServerConnection } from '@jupyterlab/services';

import { AnalystRest } from '../channel/rest';

const TIDIED = {
  notebook: 'a/work-tidy.ipynb',
  kept: ['[1]'],
  left_out: ['[2]'],
  is_same: true,
  words: '1 of 2 cells kept; outputs are the same'
};

/** A REST client whose server answers with these pieces of text. */
function answering(...pieces: string[]): AnalystRest {
  const bytes = pieces.map(piece => new TextEncoder().encode(piece));
  const body = {
    getReader: () => ({
      read: async () => {
        const value = bytes.shift();
        return { done: value === undefined, value };
      }
    })
  };
  const fetch = async () => ({ ok: true, body }) as unknown as Response;
  return new AnalystRest(ServerConnection.makeSettings({ fetch }));
}

async function asked(
  rest: AnalystRest
): Promise<{ tidied: unknown; lines: string[] }> {
  const lines: string[] = [];
  const signal = new AbortController().signal;
  const tidied = await rest.tidy('a/work.ipynb', 'r', signal, line =>
    lines.push(line)
  );
  return { tidied, lines };
}

describe('tidy', () => {
  it('reads lines that arrive in pieces', async () => {
    const text =
      JSON.stringify({ progress: 'running cell 1 of 1 – über' }) +
      '\n' +
      JSON.stringify({ tidied: TIDIED }) +
      '\n';
    for (const size of [1, 7, text.length]) {
      const pieces = Array.from(
        { length: Math.ceil(text.length / size) },
        (_, at) => text.slice(at * size, (at + 1) * size)
      );
      const { lines, tidied } = await asked(answering(...pieces));
      expect(tidied).toEqual(TIDIED);
      expect(lines).toEqual(['running cell 1 of 1 – über']);
    }
  });

  it('fails with the reason that the server gives', async () => {
    const rest = answering('{"progress": "x"}\n', '{"error": "no answer"}\n');
    await expect(asked(rest)).rejects.toThrow('no answer');
  });

  it('returns nothing where the server stops before the end', async () => {
    for (const pieces of [[], ['{"progress": "x"}\n'], ['{"tidied": {"no']]) {
      expect((await asked(answering(...pieces))).tidied).toBeNull();
    }
  });
});
