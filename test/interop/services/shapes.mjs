// Shapes of every type, derived ones too, come back as they came, with a label that says which type arrived.
const SHAPES = 'http://schemas.datacontract.org/2004/07/Contoso.Shapes'
const MORE = 'http://schemas.datacontract.org/2004/07/Contoso.More'

export default {
  Area: ({ shape }) => ({ AreaResult: Math.PI * (shape?.Radius ?? 0) ** 2 + (shape?.Side ?? 0) ** 2 }),
  Grow: ({ shape, factor }) => ({
    GrowResult: shape && {
      ...shape,
      Label: shape.$type ?? 'no type',
      ...(shape.Radius === undefined ? {} : { Radius: shape.Radius * factor }),
      ...(shape.Side === undefined ? {} : { Side: shape.Side * factor })
    }
  }),
  All: () => ({
    AllResult: {
      Shape: [
        { Label: 'plain', Origin: null },
        { $type: `{${SHAPES}}Circle`, Label: 'circle', Origin: { X: 1, Y: -0 }, Radius: 0.1 },
        null,
        { $type: `{${MORE}}RoundedSquare`, Label: 'rounded', Corner: { X: 1, Y: 2 }, Side: 3, Bevel: Infinity, Extra: { Label: 'inner', Radius: NaN } },
        { $type: `{${SHAPES}}Group`, Label: 'group', Members: { Shape: [{ $type: `{${MORE}}Square`, Side: 2 }, { Label: 'leaf' }] }, Names: { string: ['a', null, ''] } }
      ]
    }
  }),
  Point: ({ p }) => ({ PointResult: p }),
  Deep: ({ s }) => ({ DeepResult: s })
}
