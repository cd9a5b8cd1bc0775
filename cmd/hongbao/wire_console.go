package main

import (
	"hongbao/api"
	"hongbao/console"
	"hongbao/pool"
)

// mountConsole gives the staff listener its pages for people.
func mountConsole(server *api.Server, installation [32]byte, redis *pool.Pool) error {
	desk, err := console.New(console.Config{Desk: server, InstallationKey: installation, FailedSignIns: pool.NewSignIns(redis)})
	if err != nil {
		return err
	}
	server.MountConsole(desk, console.Folders...)
	return nil
}
