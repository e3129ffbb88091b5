// Requests with the same key, the part of their UserData before a colon, go to the same service instance: its caches are warm for them.
import { CustomBroker } from 'soa-broker/broker'

export default class Affinity extends CustomBroker {
  onSessionStart (session) {
    this.session = session
  }

  chooseDispatcher ({ userData = '' }, free) {
    const { state, dispatchers } = this.session
    const key = `home of ${userData.split(':')[0]}`
    // Busy or not: the request waits for it. One that is gone is no longer among them.
    const home = dispatchers.find(({ id }) => id === state.get(key))
    if (home !== undefined) return home
    const mostFree = free.reduce((best, next) => next.free > best.free ? next : best)
    state.set(key, mostFree.id)
    return mostFree
  }
}
