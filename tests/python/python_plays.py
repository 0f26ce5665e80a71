PLAYS = {}
