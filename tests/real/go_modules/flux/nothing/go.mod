// Nothing: it has the name of what only the tests of source-controller need, so that those are not looked for.
module github.com/fluxcd/pkg/helmtestserver

go 1.26.0
