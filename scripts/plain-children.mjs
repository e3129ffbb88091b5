// Loaded into every test process (.taprc). tap puts itself into each Node process that a test starts, by NODE_OPTIONS, for coverage and reports that are not used here:
// 0.4 s instead of 0.1 s for each start, and a head, a worker or a service host then runs with tap's module hooks in it. What a test starts is to be what runs.
import processOnSpawn from 'process-on-spawn'

processOnSpawn.addListener(child => {
  const { NODE_OPTIONS = '', ...env } = child.env
  const left = NODE_OPTIONS.replace(/"?--(import|loader)=[^"\s]*@tapjs[^"\s]*"?/g, '').trim()
  child.env = left === '' ? env : { ...env, NODE_OPTIONS: left }
})
