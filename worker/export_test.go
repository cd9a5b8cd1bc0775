package worker

// Fatal does what Temporal's SDK does when its pollers give up.
func (w *Worker) Fatal(err error) { w.fatal(err) }
