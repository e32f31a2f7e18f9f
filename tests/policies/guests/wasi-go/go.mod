module policy

go 1.26
