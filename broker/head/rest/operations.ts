/** Names that generated clients give their functions, by method and path below /api/v1. */
const OPERATIONS: Readonly<Record<string, string>> = {
  'GET /sessions': 'listSessions',
  'POST /sessions': 'createSession',
  'GET /sessions/:id': 'getSession',
  'DELETE /sessions/:id': 'closeSession',
  'POST /sessions/:id/cancel': 'cancelSession',
  'GET /sessions/:id/clients': 'listClients',
  'GET /sessions/:id/tasks': 'listTasks',
  'GET /sessions/:id/events': 'watchSession',
  'POST /sessions/:id/clients/:client/requests': 'sendRequests',
  'POST /sessions/:id/clients/:client/flush': 'flush',
  'POST /sessions/:id/clients/:client/end': 'endRequests',
  'GET /sessions/:id/clients/:client/responses': 'getResponses',
  'DELETE /sessions/:id/clients/:client': 'purgeClient',
  'GET /sessions/:id/trace': 'traceSession',
  'GET /sessions/:id/dead-letters': 'listDeadLetters',
  'GET /sessions/:id/dead-letters/:letter': 'getDeadLetter',
  'POST /sessions/:id/dead-letters/:letter/replay': 'replayDeadLetter',
  'DELETE /sessions/:id/dead-letters/:letter': 'removeDeadLetter',
  'GET /nodes': 'listNodes',
  'POST /nodes/:id/drain': 'drainNode',
  'POST /nodes/:id/resume': 'resumeNode',
  'GET /heads': 'listHeads',
  'POST /heads/:id/drain': 'drainHead',
  'POST /heads/:id/resume': 'resumeHead',
  'GET /services': 'listServices',
  'GET /services/:name': 'getService',
  'PUT /services/:name': 'putService',
  'GET /settings': 'listSettings'
}

/** Empty for a route beside the API, which the document does not show. */
export function operationId (method: string | string[], url: string): { operationId?: string } {
  const name = OPERATIONS[`${String(method)} ${url.replace('/api/v1', '')}`]
  return name === undefined ? {} : { operationId: name }
}
