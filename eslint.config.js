import neostandard from 'neostandard'

export default [
  ...neostandard({ ts: true, ignores: ['dist/**', 'node_modules/**', '.tap/**', 'examples/**/generated/**'] }),
  {
    rules: {
      '@typescript-eslint/no-explicit-any': 'error',
      'no-void': 'off',
      '@stylistic/max-len': ['error', { code: 200, ignoreStrings: true, ignoreTemplateLiterals: true, ignoreRegExpLiterals: true, ignoreComments: false }]
    }
  }
]
