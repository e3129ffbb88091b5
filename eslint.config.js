import neostandard from 'neostandard'

export default [
  ...neostandard({ ts: true, ignores: ['dist/**', '.build-*/**', 'node_modules/**', '.tap/**', 'examples/**/generated/**'] }),
  {
    files: ['**/*.ts'],
    rules: {
      '@typescript-eslint/no-explicit-any': 'error',
      'no-void': 'off',
      'prefer-promise-reject-errors': 'off', // a signal's reason and a caught error are passed on as they are
      '@stylistic/max-len': ['error', { code: 200, ignoreStrings: true, ignoreTemplateLiterals: true, ignoreRegExpLiterals: true, ignoreComments: false }]
    }
  }
]
