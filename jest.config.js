const jupyterLab = require('@jupyterlab/testutils/lib/jest-config');

// Packages that ship ES modules only, so Babel has to turn them into what Jest can load.
const esModules = [
  '@codemirror/',
  '@jupyter/',
  '@jupyterlab/',
  '@marijn/',
  '@microsoft/',
  '@rjsf/',
  'color',
  'exenv-es6',
  'lib0',
  'marked',
  'nanoid',
  'vscode-ws-jsonrpc',
  'y-protocols',
  'y-websocket',
  'yjs'
].join('|');

module.exports = {
  ...jupyterLab(__dirname),
  collectCoverageFrom: [
    'labextension/src/**/*.{ts,tsx}',
    '!labextension/src/**/*.gen.ts'
  ],
  coverageReporters: ['text'],
  // The built bundle and the virtual environments hold package.json files whose names collide.
  modulePathIgnorePatterns: [
    '<rootDir>/dm_jupyter',
    '<rootDir>/lib',
    '<rootDir>/.venv',
    '<rootDir>/build'
  ],
  reporters: ['default'],
  roots: ['<rootDir>/labextension/src'],
  testRegex: '/__tests__/.*\\.spec\\.tsx?$',
  // The first test of a file may load all of JupyterLab on a busy machine.
  testTimeout: 240_000,
  transformIgnorePatterns: [`/node_modules/(?!${esModules}).+`]
};
