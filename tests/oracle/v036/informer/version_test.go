package informer

// client-go 0.36 says whether it has synced without taking a lock.
const mayAskWhileStoring = true
