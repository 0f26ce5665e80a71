module example.com/galatea-client

go 1.23
