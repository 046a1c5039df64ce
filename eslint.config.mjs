import js from '@eslint/js';
import jupyter from '@jupyter/eslint-plugin';
import prettier from 'eslint-config-prettier';
import { defineConfig } from 'eslint/config';
import globals from 'globals';
import tseslint from 'typescript-eslint';

export default defineConfig([
  {
    // Only the front end's own sources; generated files are the generator's business.
    ignores: [
      '**/*.gen.ts',
      '**/*.d.ts',
      '.venv/**',
      'build/**',
      'dm_jupyter/**',
      'lib/**'
    ]
  },
  js.configs.recommended,
  {
    files: ['*.js', 'labextension/style/*.js'],
    languageOptions: { globals: globals.node }
  },
  {
    files: ['labextension/src/**/*.{ts,tsx}'],
    plugins: { jupyter },
    extends: [tseslint.configs.recommended, jupyter.configs.recommended],
    languageOptions: {
      globals: globals.browser,
      parserOptions: { project: 'tsconfig.test.json' }
    },
    rules: {
      '@typescript-eslint/naming-convention': [
        'error',
        {
          selector: 'interface',
          format: ['PascalCase'],
          custom: { regex: '^I[A-Z]', match: true }
        }
      ],
      '@typescript-eslint/no-explicit-any': 'off',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-namespace': 'off',
      '@typescript-eslint/no-unused-vars': ['error', { args: 'none' }],
      curly: ['error', 'all'],
      eqeqeq: 'error',
      'prefer-arrow-callback': ['error', { allowNamedFunctions: true }]
    }
  },
  {
    files: ['labextension/src/**/__tests__/**'],
    rules: { 'jupyter/no-untranslated-string': 'off' }
  },
  prettier,
  // Last, because eslint-config-prettier turns it off.
  { rules: { curly: ['error', 'all'] } }
]);
